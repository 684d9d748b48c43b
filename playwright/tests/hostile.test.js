// What a workflow stored is text, never markup. The demo holds a situation made of script tags,
// event handlers and javascript: addresses; the harness fails on any dialog, error or violation.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually, startDemo } from '../harness.js';
import { query, run, runs, situationsOf } from '../pages.js';

const demo = await startDemo();

/** Elements that no template of ours makes. */
async function assertOurs(page) {
  const foreign = await page.evaluate(() => [
    ...[...document.scripts].filter((script) => !script.src && script.type !== 'application/json'),
    ...document.querySelectorAll('iframe, object, embed, base, [onerror], [onload], [onclick], [onmouseover]'),
    ...[...document.querySelectorAll('[href], [src], [action]')].filter((element) =>
      /^\s*(javascript|data|vbscript):/i.test(
        element.getAttribute('href') ?? element.getAttribute('src') ?? element.getAttribute('action'),
      )),
  ].map((element) => element.outerHTML.slice(0, 200)));
  assert.deepEqual(foreign, [], `markup of no template of ours on ${page.url()}`);
}

test('stored markup stays text in all that opens on demand', { timeout: 120_000 }, () =>
  demo.withPage({}, async (page, base) => {
    const { instance, id } = (await situationsOf(base)).get('hostile-text');
    const here = `${base}/instances/${encodeURIComponent(instance)}/runs/${id}`;
    await page.goto(here);
    for (let lane = 0; lane < (await run.lanes(page).count()); lane += 1) {
      await run.lanes(page).nth(lane).click();
      await run.unit(page).waitFor();
      await assertOurs(page);
    }
    await page.locator('main details').evaluateAll((all) => all.forEach((details) => (details.open = true)));
    await assertOurs(page);
    await page.goto(`${here}/history`);
    const payloads = run.events(page).locator('a.kind');
    const count = await payloads.count();
    assert.ok(count > 5, `${count} payloads`);
    for (let event = 0; event < count; event += 1) await payloads.nth(event).click();
    await eventually(async () => assert.equal(await page.locator('tr.opened').count(), count));
    assert.match(await page.getByRole('main').innerText(), /<script/i, 'and it can be read');
    await assertOurs(page);
  }));

test('stored markup is shown as text, on the list and on every run page', { timeout: 300_000 }, () =>
  demo.withPage({}, async (page, base) => {
    const hrefs = new Set();
    const shown = [];
    const look = async () => {
      shown.push(await page.locator('body').innerText());
      await assertOurs(page);
    };

    await runs.open(page, base);
    await runs.pageSize(page, 100).click();
    await page.waitForURL(/100/);
    for (;;) {
      await look();
      (await runs.hrefs(page)).forEach((href) => hrefs.add(href));
      if (!(await runs.older(page).isVisible()) || hrefs.size > 300) break;
      const url = page.url();
      await runs.older(page).click();
      await page.waitForURL((now) => now.href !== url);
    }
    for (const href of hrefs) {
      const response = await page.goto(new URL(href, base).href);
      assert.equal(response.status(), 200, href);
      await look();
    }
    assert.ok(shown.some((text) => /<script/i.test(text)), 'the demo has the hostile situation, and it can be read');
  }));

test('markup in the address is shown as text', () =>
  demo.withPage({ expectStatus: [404, 422] }, async (page, base) => {
    const hostile = '"><img src=x onerror=alert(1)><script>alert(2)</script>';
    for (const below of [
      `/runs${query.instance(hostile)}`,
      `/runs${query.status(hostile)}`,
      `/instances/${encodeURIComponent(hostile)}`,
      `/${encodeURIComponent(hostile)}`,
    ]) {
      await page.goto(`${base}${below}`);
      assert.equal(await page.locator('img[src="x"]').count(), 0, below);
    }
    await runs.open(page, base, query.instance(hostile));
    assert.ok((await page.getByRole('main').innerText()).includes(hostile), 'and it can be read');
  }));
