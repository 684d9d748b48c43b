// A run exported from its page and opened again as a file is the same page, without controls.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { axe, startDemo } from '../harness.js';
import { situationsOf } from '../pages.js';

const demo = await startDemo();

const CHOSEN = [
  'completed',
  'failed-activity-after-retries',
  'handled-failure',
  'retrying-mid-backoff',
  'waiting-signal-with-timeout',
  'waiting-child',
  'waiting-update',
  'timer-fired-task-lost',
  'parallel-mixed',
  'continue-as-new-chain',
];

/** Situation by name: where its run is. */
const situations = new Map();

before(async () => {
  for (const [name, { instance, id }] of await situationsOf(demo.base)) {
    situations.set(name, `/instances/${encodeURIComponent(instance)}/runs/${id}`);
  }
});

const SECTIONS = ['diagnosis', 'timeline', 'activities', 'exceptions', 'tasks', 'waits', 'signals', 'updates', 'commands', 'children', 'history'];

/** What each section says, by its name. */
async function said(page) {
  const texts = {};
  for (const id of SECTIONS) {
    const section = page.locator(`#${id}`);
    if (await section.count()) texts[id] = (await section.innerText()).replace(/\s+/g, ' ').trim();
  }
  // A bundle says when its own run began, not when the one before it did.
  texts.children &&= texts.children.replace(/ started [^,]*? ago(, took .*?)?(?= Details)/g, '');
  return texts;
}

async function download(page, by) {
  const [file] = await Promise.all([page.waitForEvent('download'), by()]);
  assert.match(file.suggestedFilename(), /^workflow-history-.+\.json$/);
  return file.path();
}

async function open(page, base, file) {
  await page.goto(`${base}/bundles`);
  await page.getByLabel(/^Bundle/).setInputFiles(file);
  await page.getByRole('button', { name: 'Open', exact: true }).click();
  await page.waitForURL(/\/bundles\/[\w-]+$/);
}

test('ten situations come back from their file', { timeout: 300_000 }, () =>
  demo.withPage({}, async (page, base) => {
    for (const name of CHOSEN) {
      assert.ok(situations.has(name), `${name} is a situation`);
      await page.goto(`${base}${situations.get(name)}`);
      const live = await said(page);
      const file = await download(page, () => page.getByRole('link', { name: 'Export', exact: true }).click());
      await open(page, base, file);
      await page.getByText('Unsigned', { exact: true }).waitFor();
      assert.deepEqual(await said(page), live, name);
      assert.equal(await page.getByText(/^(No repair|Repair: called for)$/).count(), 0, `${name}: no controls`);
    }
    await axe(page);
  }));

test('the key e exports, and the file compares with its run', () =>
  demo.withPage({}, async (page, base) => {
    await page.goto(`${base}${situations.get(CHOSEN[0])}`);
    const file = await download(page, () => page.keyboard.press('e'));
    await open(page, base, file);
    const bundle = page.url().split('/').pop();
    const run = situations.get(CHOSEN[0]).split('/').pop();
    await page.goto(`${base}/compare?a=${run}&b=bundle:${bundle}`);
    await page.getByText(/^No difference in/).waitFor();
    await axe(page);
  }));

test('without scripts a file is opened, and what is none is refused', () =>
  demo.withPage({ javaScript: false, expectStatus: [422] }, async (page, base) => {
    await page.goto(`${base}/bundles`);
    const send = async (text) => {
      await page.getByLabel(/^Bundle/).setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(text) });
      await page.getByRole('button', { name: 'Open', exact: true }).click();
    };
    await send('{"schema": "something else"}');
    await page.getByText('Not a bundle', { exact: true }).waitFor();
    const bundle = await fetch(`${base}/api${situations.get(CHOSEN[0])}/history-export`);
    await send((await bundle.text()).replace('"run_number":1', '"run_number":2'));
    await page.getByText('Altered', { exact: true }).waitFor();
  }));
