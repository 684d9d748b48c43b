// On a phone: nothing scrolls sideways, nothing is lost.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { screenshot, startDemo } from '../harness.js';
import { assertFits, query, runs, situationsOf } from '../pages.js';

const demo = await startDemo();
const phone = { width: 360, height: 740 };

test('the list fits 360 px and still shows every run', () =>
  demo.withPage(phone, async (page, base) => {
    await runs.open(page, base);
    await assertFits(page);
    await screenshot(page, 'runs-narrow');
    const narrow = await page.getByRole('main').locator('tbody tr').count();
    await page.setViewportSize({ width: 1280, height: 800 });
    assert.equal((await runs.rows(page).count()) + (await runs.unprojected(page).count()), narrow);
  }));

test('the open filter form fits 360 px', () =>
  demo.withPage(phone, async (page, base) => {
    await runs.open(page, base);
    await runs.openForm(page);
    await assertFits(page);
  }));

for (const [what, below] of [
  ['the start page', '/'],
  ['a filtered list', '/runs?status=completed&queue=a-rather-long-queue-name-that-nobody-uses-anywhere'],
  ['a value as long as the form takes', `/runs?queue=${'x'.repeat(191)}`],
  ['an empty list', `/runs${query.empty}`],
  ['a malformed filter', `/runs${query.malformed}`],
  ['the styleguide', '/styleguide'],
  ['an error', '/no-such-page'],
  ['find without a result', `/find?q=${'x'.repeat(100)}`],
]) {
  test(`${what} fits 360 px`, () =>
    demo.withPage({ ...phone, expectStatus: [404, 422] }, async (page, base) => {
      await page.goto(`${base}${below}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await assertFits(page);
    }));
}

test('the page of every situation fits 360 px', { timeout: 300_000 }, () =>
  demo.withPage(phone, async (page, base) => {
    const situations = await situationsOf(base);
    assert.ok(situations.size > 80, `${situations.size} situations`);
    for (const { instance, id } of situations.values()) {
      await page.goto(`${base}/instances/${encodeURIComponent(instance)}/runs/${id}`);
      await assertFits(page);
    }
  }));
