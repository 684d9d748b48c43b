// One zone per page, chosen in the header.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { axe, eventually, startDemo } from '../harness.js';
import { run, runs, zone } from '../pages.js';

const demo = await startDemo();

test('a zone that is chosen holds on the list, on a run and in filters', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    assert.match(await run.head(page).innerText(), /2026-11-15 11:57:00 UTC/);
    const before = page.url();
    await zone.choose(page, 'Europe/Berlin');
    await eventually(async () => assert.match(await run.head(page).innerText(), /2026-11-15 12:57:00 CET/));
    assert.equal(page.url(), before, 'choosing a zone stays on the page');
    assert.match(await run.timeline(page).innerText(), /12:57:00/);
    assert.match(await zone.opener(page).innerText(), /Europe\/Berlin/);

    // 12:57 in Berlin is when it started; a minute later it had.
    const within = async (from) => {
      await runs.open(page, base, `?instance_id=ord-48301&from=${from}`);
      return runs.rows(page).count();
    };
    assert.equal(await within('2026-11-15T12:56'), 1);
    assert.equal(await within('2026-11-15T12:58'), 0);
    await runs.openForm(page);
    assert.match(await runs.form(page).innerText(), /Times without a zone are read as Europe\/Berlin/);
  }));

test('the browser offers its own zone', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    await zone.opener(page).click();
    await axe(page);
    await page.getByRole('button', { name: /^browser: Asia\/Kath?mandu$/ }).click();
    await eventually(async () => assert.match(await run.head(page).innerText(), /2026-11-15 17:42:00 \+0545/));
  }));

test('a zone is chosen without scripts too, and one nobody knows is refused', () =>
  demo.withPage({ javaScript: false, expectStatus: [422] }, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    await zone.choose(page, 'Asia/Tokyo');
    await page.getByText('2026-11-15 20:57:00 JST').first().waitFor();
    await zone.choose(page, 'Nowhere/Land');
    await page.getByText('such as UTC or Europe/Berlin').first().waitFor();
  }));
