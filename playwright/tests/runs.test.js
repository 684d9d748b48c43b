// The list of runs: what it shows, and finding one's way in it with the mouse.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { screenshot, startDemo } from '../harness.js';
import { find, idsOf, query, runs } from '../pages.js';

const demo = await startDemo();

test('the list shows one row per run, with its columns and tags', () =>
  demo.withPage({}, async (page, base) => {
    const response = await runs.open(page, base);
    assert.equal(response.status(), 200);

    const headers = await page.getByRole('main').getByRole('columnheader').allInnerTexts();
    assert.deepEqual(
      headers.map((text) => text.replace(/[^\p{L}· ]/gu, '').trim()),
      ['Status', 'Type · instance', 'Run', 'Queue', 'Started', 'Duration', 'Waiting for · closed by', 'Attention'],
    );

    const hrefs = await runs.hrefs(page);
    assert.ok(hrefs.length > 0, 'the demo has runs');
    assert.ok(!hrefs.includes(null), 'every row leads to its run');
    assert.equal(new Set(hrefs).size, hrefs.length, 'no run twice');
    for (const [status] of await runs.cells(page)) assert.match(status, /^\p{L}/u, 'every row has a status in words');
  }));

test('each bucket shows only its runs', () =>
  demo.withPage({}, async (page, base) => {
    for (const [bucket, status] of [
      ['Running', /^(running|waiting|pending)/i],
      ['Completed', /^completed/i],
      ['Failed', /^(failed|timed out|cancelled|terminated)/i],
    ]) {
      await runs.open(page, base);
      await runs.bucket(page, bucket).click();
      await page.waitForURL(/\/runs\?/);
      const cells = await runs.cells(page);
      assert.ok(cells.length > 0, `the demo has runs in ${bucket}`);
      for (const [shown] of cells) assert.match(shown, status, `a row of ${bucket}`);
    }
  }));

test('runs that need repair are one click away and say so', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    await runs.bucket(page, 'Needs repair').click();
    await page.waitForURL(/\/runs\?/);
    const cells = await runs.cells(page);
    assert.ok(cells.length > 0, 'the demo has runs that need repair');
    for (const row of cells) assert.match(row.at(-1), /repair/i);
  }));

test('a row leads to its run', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    const [href] = await runs.hrefs(page);
    await runs.rows(page).first().getByRole('link').first().click();
    await page.waitForURL((url) => url.pathname === href);
    await page.getByRole('heading', { level: 1 }).waitFor();
    const text = await page.getByRole('main').innerText();
    assert.ok(text.includes(idsOf(href).instance), 'and the run page names its instance');
  }));

test('the form filters, the address says how, and the chip takes it back', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    const [href] = await runs.hrefs(page);
    const { instance } = idsOf(href);
    assert.equal(await runs.removers(page).count(), 0, 'no filter to begin with');

    await runs.filter(page, { instance });
    await page.waitForURL((url) => url.searchParams.size > 0);
    const filtered = await runs.hrefs(page);
    assert.ok(filtered.length > 0);
    for (const each of filtered) assert.equal(idsOf(each).instance, instance);
    assert.equal(await runs.removers(page).count(), 1);

    await page.reload();
    assert.deepEqual(await runs.hrefs(page), filtered, 'the address carries the filter');

    await runs.removers(page).click();
    await runs.removers(page).waitFor({ state: 'detached' });
    assert.ok((await runs.hrefs(page)).length > filtered.length);
  }));

test('two filters narrow together and go one by one', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base, query.status('completed'));
    const queue = (await runs.cells(page)).map((cells) => cells[3]).find(Boolean);
    assert.ok(queue, 'a completed run of the demo has a queue');
    await runs.filter(page, { queue: queue.split(' ')[0] });
    await runs.removers(page).nth(1).waitFor();
    for (const cells of await runs.cells(page)) {
      assert.match(cells[0], /^completed/i);
      assert.ok(cells[3].startsWith(queue.split(' ')[0]));
    }
    await runs.removers(page).first().click();
    await runs.removers(page).nth(1).waitFor({ state: 'detached' });
    assert.equal(await runs.removers(page).count(), 1);
  }));

test('pages go forward and back, by link and by the Back button', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    await runs.pageSize(page, 25).click();
    await page.waitForURL(/25/);
    const first = await runs.hrefs(page);
    const firstUrl = page.url();
    assert.equal(first.length, 25, 'the demo fills more than one page of 25');

    await runs.older(page).click();
    await page.waitForURL((url) => url.href !== firstUrl);
    const secondUrl = page.url();
    const second = await runs.hrefs(page);
    assert.ok(second.length > 0);
    assert.ok(!second.some((href) => first.includes(href)), 'no run is on both pages');
    assert.match(secondUrl, /[?&]\w+=/, 'the address carries the place in the list');

    await page.goBack();
    assert.equal(page.url(), firstUrl);
    assert.deepEqual(await runs.hrefs(page), first, 'Back shows the first page again');

    await page.goto(secondUrl);
    assert.deepEqual(await runs.hrefs(page), second, 'the address alone shows the same page');
    await runs.newer(page).click();
    await page.waitForURL((url) => url.href !== secondUrl);
    assert.deepEqual(await runs.hrefs(page), first, 'Newer undoes Older');
  }));

test('larger pages hold more rows and the choice stays while paging', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    await runs.pageSize(page, 25).click();
    await page.waitForURL(/25/);
    const small = await runs.hrefs(page);
    await runs.older(page).click();
    await page.waitForURL(/25/);
    await runs.open(page, base);
    await runs.pageSize(page, 100).click();
    await page.waitForURL(/100/);
    const large = await runs.hrefs(page);
    assert.ok(large.length > small.length);
    assert.deepEqual(large.slice(0, small.length), small, 'same order');
  }));

test('an empty list names the filter that hides the rows and offers to remove it', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base, query.empty);
    assert.equal(await runs.rows(page).locator('a').count(), 0);
    const main = page.getByRole('main');
    assert.match(await main.innerText(), /no-such-instance/);
    await runs.removers(page).last().click();
    await runs.rows(page).first().waitFor();
    assert.ok((await runs.hrefs(page)).length > 0);
  }));

async function assertNamed(page, url, parameter) {
  const response = await page.goto(url);
  assert.ok([200, 422].includes(response.status()), `${url} says ${response.status()}`);
  const alert = page.getByRole('alert').first();
  await alert.waitFor();
  assert.match(await alert.innerText(), new RegExp(parameter, 'i'));
  await page.getByRole('heading', { level: 1 }).waitFor();
}

test('a malformed filter is named and the page stands', () =>
  demo.withPage({ expectStatus: [422] }, (page, base) =>
    assertNamed(page, `${base}/runs${query.malformed}`, 'status')));

test('an address cut off in an e-mail is named, not an error of ours', () =>
  demo.withPage({ expectStatus: [422] }, async (page, base) => {
    await runs.open(page, base);
    await runs.pageSize(page, 25).click();
    await page.waitForURL(/25/);
    const here = new URL(page.url()).searchParams;
    const older = new URL(await runs.older(page).getAttribute('href'), page.url());
    const cursor = [...older.searchParams.keys()].find((name) => here.get(name) !== older.searchParams.get(name));
    older.searchParams.set(cursor, 'cut-o');
    await assertNamed(page, older.href, cursor);
  }));

test('an instance id in the find box leads to its run', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    const { instance, run } = idsOf((await runs.hrefs(page))[0]);
    await find.go(page, instance);
    await page.waitForURL((url) => /\/instances\/[^/]+\/runs\/[^/]+$/.test(url.pathname));
    assert.equal(idsOf(page.url()).instance, instance);

    await find.go(page, run);
    await page.waitForURL((url) => url.pathname.endsWith(`/runs/${encodeURIComponent(run)}`));
    assert.deepEqual(idsOf(page.url()), { instance, run }, 'a run id leads to that very run');
  }));

test('an unknown id is said to be unknown', () =>
  demo.withPage({ expectStatus: [404] }, async (page, base) => {
    await runs.open(page, base);
    await find.go(page, 'no-such-id-anywhere');
    await page.getByText(/no-such-id-anywhere/).first().waitFor();
    assert.match(await page.getByRole('main').innerText(), /not found|nothing|no (run|instance|match)/i);
  }));

for (const theme of ['light', 'dark']) {
  test(`a picture of the list in the ${theme} theme`, () =>
    demo.withPage({ theme, width: 1440, height: 900 }, async (page, base) => {
      await runs.open(page, base);
      await screenshot(page, `runs-${theme}`);
    }));
}
