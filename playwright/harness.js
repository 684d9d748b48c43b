// What every browser test stands on: the demo, served by the real binary; a real Chromium; and
// a page that fails its test when anything goes wrong that an operator would not see.
//
//   const demo = await startDemo();
//   test('…', () => demo.withPage({ theme: 'dark' }, async (page, base) => { … }));
//
// One browser per file, shared by all demos in it. Both are gone when the file ends.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { AxeBuilder } from '@axe-core/playwright';
import { chromium } from 'playwright-core';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const binary = process.env.PLIMSOLL_BIN ?? path.join(root, 'target/debug/plimsoll');
const screenshots = process.env.PLIMSOLL_SCREENSHOTS ?? path.join(root, 'target/screenshots');

/** The moment the demo is frozen at, so that ages and screenshots never change. */
export const NOW = '2026-11-15T12:00:00Z';

const START_MS = 60_000;
const WAIT_MS = 10_000;

/** Starts the demo on a free port, below `basePath`. */
export async function startDemo({ basePath = '/waterline' } = {}) {
  return served(['demo', '--base-path', basePath]);
}

/**
 * Serves a database of `runs` generated runs: more than one look into a list holds. `away` puts
 * its file out of use while something is done.
 */
export async function startSeeded({ runs }) {
  const folder = mkdtempSync(path.join(tmpdir(), 'plimsoll-seeded-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'seeded.sqlite');
  const url = ['--database-url', `sqlite:${file}`];
  const how = ['--create', '--projections', 'summaries', '--runs', runs, '--clock', NOW];
  await promisify(execFile)(binary, ['seed', ...url, ...how]);
  return { ...(await served(['serve', ...url, '--metrics-interval', '1'])), away: (use) => away(file, use) };
}

/** Without its first page a file is no database, until it has it back. */
async function away(file, use) {
  const first = Buffer.alloc(4096);
  const open = openSync(file, 'r+');
  readSync(open, first, 0, first.length, 0);
  writeSync(open, Buffer.alloc(first.length), 0, first.length, 0);
  try {
    return await use();
  } finally {
    writeSync(open, first, 0, first.length, 0);
    closeSync(open);
  }
}

async function served(args) {
  const server = await startServer(args);
  return {
    /** Address of the pages, without a slash at its end: `${base}/runs`. */
    base: server.base,
    withPage: (options, use) => withPage(server, options, use),
  };
}

// ---------------------------------------------------------------------------------- server

const servers = new Set();

async function startServer(args) {
  const child = spawn(binary, [...args, '--listen', '127.0.0.1:0', '--clock', NOW], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  servers.add(child);
  let said = '';
  const saying = (stream) => stream.on('data', (text) => (said = (said + text).slice(-20_000)));
  saying(child.stderr.setEncoding('utf8'));
  saying(child.stdout.setEncoding('utf8'));

  const printed = new Promise((resolve, reject) => {
    let out = '';
    child.stdout.on('data', (text) => {
      out += text;
      const url = out.match(/(https?:\/\/\S+)\s/);
      if (url) resolve(url[1]);
    });
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      servers.delete(child);
      reject(new Error(`it ended (${signal ?? code})`));
    });
  });
  try {
    const url = await within(START_MS, printed, 'it printed no address');
    const { origin } = new URL(url);
    await until(START_MS, `${origin}/readyz does not say 200`, async () => {
      const response = await fetch(`${origin}/readyz`).catch(() => null);
      return response?.status === 200;
    });
    return { child, origin, base: url.replace(/\/+$/, '') };
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error(`${binary} ${args[0]} did not start: ${error.message}\n${said}`);
  }
}

// --------------------------------------------------------------------------------- browser

let browser;

async function sharedBrowser() {
  browser ??= chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox', // CI runs as root; every page is ours
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', // nothing leaves this machine
    ],
  });
  return browser;
}

after(async () => {
  await (await browser?.catch(() => null))?.close();
  await Promise.all([...servers].map(stop));
});

async function stop(child) {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const hard = setTimeout(() => child.kill('SIGKILL'), 5_000);
  await ended;
  clearTimeout(hard);
}

// However this process ends, no server outlives it. (Playwright does the same for the browser.)
process.on('exit', () => servers.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

// ------------------------------------------------------------------------------------ page

/**
 * Opens a page with its own cookies, lets `use(page, base)` work with it, and fails if the page
 * logged an error, threw, broke its content security policy, opened a dialog, or asked any
 * other host for anything.
 *
 * - `theme`: what the operating system prefers, 'light' or 'dark'
 * - `width`, `height`: of the window, in CSS pixels
 * - `javaScript`: false to switch scripts off
 * - `expectStatus`: statuses above 399 that the test asks for on purpose, of documents only
 * - `expectLost`: matches the addresses whose requests the test lets fail on purpose
 */
async function withPage(server, options, use) {
  const {
    theme = 'light',
    width = 1280,
    height = 800,
    javaScript = true,
    expectStatus = [],
    expectLost = null,
  } = options;
  const context = await (await sharedBrowser()).newContext({
    colorScheme: theme,
    javaScriptEnabled: javaScript,
    locale: 'en-GB',
    reducedMotion: 'reduce',
    timezoneId: 'Asia/Kathmandu', // far from UTC: the page must name its own zone, not the viewer's
    viewport: { width, height },
  });
  context.setDefaultTimeout(WAIT_MS);
  const problems = await watch(context, server, expectStatus, expectLost);
  const page = await context.newPage();
  try {
    await use(page, server.base);
    if (problems.length > 0) throw new Error('the page did something it must not');
  } catch (error) {
    const shot = await screenshot(page, `failed-${process.pid}-${++failures}`).catch(() => null);
    const context = [...problems, `at ${page.url()}`, ...(shot ? [`see ${shot}`] : [])];
    // Reporters print the stack, which was written before we knew.
    error.stack = `${error.message}\n  ${context.join('\n  ')}\n${error.stack}`;
    throw error;
  } finally {
    await context.close();
  }
}

let failures = 0;

async function watch(context, server, expectStatus, expectLost) {
  const problems = [];
  const documents = new Set();
  context.on('request', (request) => {
    if (request.isNavigationRequest()) documents.add(request.url());
    const { protocol, origin, hostname } = new URL(request.url());
    if (/^(https?|wss?):$/.test(protocol) && hostname !== '127.0.0.1') {
      problems.push(`a request left this machine: ${request.url()}`);
    } else if (protocol === 'http:' && origin !== server.origin) {
      problems.push(`a request went to another server: ${request.url()}`);
    }
  });
  context.on('console', (message) => {
    if (message.type() !== 'error') return;
    const { url } = message.location();
    const status = message.text().match(/the server responded with a status of (\d+)/)?.[1];
    if (status && documents.has(url) && expectStatus.includes(Number(status))) return;
    if (expectLost?.test(url) && message.text() === 'Failed to load resource: net::ERR_FAILED') return;
    if (expectLost && /^htmx:(afterRequest|sendError|timeout),/.test(message.text())) return;
    problems.push(`console error: ${message.text()} (${url})`);
  });
  context.on('weberror', (error) => problems.push(`uncaught: ${error.error().message}`));
  context.on('dialog', async (dialog) => {
    problems.push(`a dialog opened: ${dialog.type()} ${JSON.stringify(dialog.message())}`);
    await dialog.dismiss().catch(() => {});
  });
  // Chromium does not log every violation as an error (a report-only one is a warning).
  await context.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => {
      console.error(`CSP violation: ${event.effectiveDirective} refused ${event.blockedURI}`);
    });
  });
  return problems;
}

// --------------------------------------------------------------------------------- helpers

const WCAG = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** Asserts that the page, as it stands, breaks no rule of WCAG 2.2 AA that a machine can check. */
export async function axe(page) {
  const { violations } = await new AxeBuilder({ page }).withTags(WCAG).analyze();
  const told = violations.flatMap(({ id, impact, help, nodes }) => [
    `${impact} ${id}: ${help} (${nodes.length} places)`,
    ...nodes.slice(0, 5).flatMap(({ target, failureSummary, html }) => [
      `    ${target.flat().join(' ')}`,
      `    ${html.slice(0, 200)}`,
      ...failureSummary.split('\n').map((line) => `      ${line.trim()}`),
    ]),
  ]);
  assert.equal(violations.length, 0, `accessibility of ${page.url()}\n${told.join('\n')}`);
}

/** Saves what the window shows as target/screenshots/NAME.png and says where. */
export async function screenshot(page, name, options = {}) {
  mkdirSync(screenshots, { recursive: true });
  const file = path.join(screenshots, `${name}.png`);
  await page.screenshot({ path: file, animations: 'disabled', ...options });
  return file;
}

/** Repeats `check` until it returns something true. */
export async function until(ms, what, check) {
  const deadline = Date.now() + ms;
  while (!(await check())) {
    if (Date.now() > deadline) throw new Error(what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Repeats `check` until it no longer throws, and throws what it threw last. */
export async function eventually(check, ms = WAIT_MS) {
  let last;
  await until(ms, '', async () => {
    try {
      await check();
      return true;
    } catch (error) {
      last = error;
      return false;
    }
  }).catch(() => {
    throw last;
  });
}

async function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(what)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
