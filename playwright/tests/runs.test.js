// The list of runs: what it shows, and finding one's way in it with the mouse.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually, screenshot, startDemo } from '../harness.js';
import { find, idsOf, query, runs } from '../pages.js';

const demo = await startDemo();

test('the list shows one row per run, with its columns and tags', () =>
  demo.withPage({}, async (page, base) => {
    const response = await runs.open(page, base);
    assert.equal(response.status(), 200);

    const headers = await runs.table(page).getByRole('columnheader').allInnerTexts();
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
      ['Running', /^(running|waiting|pending|hibernating)/i], // the last by an engine newer than us
      ['Completed', /^(completed|continued)/i],
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
    assert.match(await runs.bucket(page, 'Needs repair').innerText(), new RegExp(`\\b${cells.length}$`), 'as many as the chip says');
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
      assert.match(cells[0], /^(completed|continued)/i);
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
    await eventually(async () => {
      assert.equal(page.url(), firstUrl);
      assert.deepEqual(await runs.hrefs(page), first, 'Back shows the first page again');
    });

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
    await page.waitForURL((url) => url.pathname.includes('/instances/'));
    assert.equal(idsOf(page.url()).instance, instance);
    assert.ok((await page.getByRole('main').innerText()).includes(run), 'it is the current run');

    await find.go(page, run);
    await page.waitForURL((url) => url.pathname.endsWith(`/runs/${encodeURIComponent(run)}`));
    assert.deepEqual(idsOf(page.url()), { instance, run }, 'a run id leads to that very run');
  }));

test('a task id in the find box leads to the run the task belongs to', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    // The retry that order ord-48301 waits for. The demo makes the same ids at the same moment.
    await find.go(page, '01m7fh3v6m7w5xkwpbn0kqb4b6');
    await page.waitForURL((url) => url.pathname.includes('/instances/'));
    assert.equal(idsOf(page.url()).instance, 'ord-48301');
  }));

test('a business key in the find box leads to its run', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    await find.go(page, 'Bestellung №48277 · 注文');
    await page.waitForURL((url) => url.pathname.includes('/instances/'));
    assert.equal(idsOf(page.url()).instance, 'ord-48277');
  }));

test('an unknown id is said to be unknown', () =>
  demo.withPage({ expectStatus: [404] }, async (page, base) => {
    await runs.open(page, base);
    await find.go(page, 'no-such-id-anywhere');
    await page.getByText(/no-such-id-anywhere/).first().waitFor();
    assert.match(await page.getByRole('main').innerText(), /not found|nothing|no (run|instance|match)/i);
  }));

test('the form shows the filters in force and keeps what it has no field for', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base, '?status_bucket=running&sort_direction=asc&per_page=25');
    await runs.filter(page, { status: 'waiting', queue: 'orders', 'type contains': 'fulfil', started: '24h' });
    await page.waitForURL((url) => url.searchParams.get('queue') === 'orders');
    assert.deepEqual(Object.fromEntries(new URL(page.url()).searchParams), {
      status_bucket: 'running',
      status: 'waiting',
      queue: 'orders',
      workflow_type_contains: 'fulfil',
      started: '24h',
      sort_direction: 'asc',
      per_page: '25',
    }, 'and the address has no blank fields');
    const cells = await runs.cells(page);
    assert.ok(cells.length > 0);
    for (const row of cells) {
      assert.match(row[0], /^waiting/);
      assert.match(row[1], /fulfil/);
      assert.match(row[3], /^orders/);
    }

    await runs.openForm(page);
    for (const [label, value] of Object.entries({ status: 'waiting', queue: 'orders', 'type contains': 'fulfil', started: '24h', namespace: '' })) {
      assert.equal(await runs.field(page, label).inputValue(), value, label);
    }
    await runs.form(page).getByRole('link', { name: 'Clear all' }).click();
    await page.waitForURL((url) => url.search === '');
    assert.equal(await runs.removers(page).count(), 0);
  }));

test('a search attribute is asked for by key and value', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    await runs.filter(page, { key: 'Team', value: 'no-such-team' });
    await page.waitForURL((url) => url.searchParams.get('search_attribute[Team]') === 'no-such-team');
    await page.getByRole('link', { name: /^Remove filter attribute Team no-such-team/ }).first().waitFor();
  }));

test('a refused value stands in the form to be corrected', () =>
  demo.withPage({ expectStatus: [422] }, async (page, base) => {
    await runs.open(page, base, '?queue=orders&from=yesterday&status=bogus');
    assert.equal(await runs.field(page, 'started from').inputValue(), 'yesterday');
    assert.equal(await runs.field(page, 'status').inputValue(), 'bogus');
    assert.equal(await runs.rows(page).count(), 0);
    await runs.field(page, 'started from').fill('2026-11-15T00:00');
    await runs.filter(page, { status: 'waiting' });
    await runs.rows(page).first().waitFor();
    assert.equal(await runs.removers(page).count(), 3);
  }));

test('a filter no index serves says how far it looked', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base, '?failure_category=activity');
    assert.ok((await runs.hrefs(page)).length > 0);
    assert.match(await runs.note(page), /\d+ runs, 2026-.* UTC\. Looked at all runs there are from here\./);
    assert.ok((await runs.cells(page)).some((row) => /activity/.test(row.at(-1))));
  }));

test('the size in force is marked, and a page says how many rows it has and from when to when', () =>
  demo.withPage({}, async (page, base) => {
    for (const size of [25, 50, 100]) {
      await runs.open(page, base, `?per_page=${size}`);
      assert.equal(await runs.pageSize(page, size).getAttribute('aria-current'), 'true');
      const rows = await runs.rows(page).count();
      assert.ok(rows <= size);
      assert.match(await runs.note(page), new RegExp(`\\b${rows} runs, 2026-11-15 \\d\\d:\\d\\d:\\d\\d to .* UTC`));
    }
  }));

test('oldest first turns the list around, and its pages say which way is newer', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base, '?per_page=25');
    const started = runs.table(page).getByRole('columnheader', { name: /^Started/ });
    assert.equal(await started.getAttribute('aria-sort'), 'descending');
    const newest = await runs.hrefs(page);
    await runs.order(page, 'Oldest first').click();
    await page.waitForURL(/sort_direction=asc/);
    assert.equal(await started.getAttribute('aria-sort'), 'ascending');
    let last;
    for (let turns = 0; await runs.newer(page).count(); turns += 1) {
      assert.ok(turns < 10, 'the pages come to an end');
      const url = page.url();
      await runs.newer(page).click();
      await page.waitForURL((now) => now.href !== url);
      last = await runs.hrefs(page);
    }
    assert.equal(last.at(-1), newest[0], 'the newest run is the very last');
    assert.equal(await runs.older(page).count(), 1, 'and the way back is to older ones');

    await started.getByRole('link').click();
    await page.waitForURL((url) => !url.searchParams.has('sort_direction'));
    assert.deepEqual(await runs.hrefs(page), newest, 'the column turns it back');
  }));

test('a status nobody knows is shown as it is stored', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    const row = runs.row(page, 'ord-48310');
    assert.equal(await row.getByText('hibernating', { exact: true }).count(), 1);
    await row.getByRole('link').first().click();
    await page.getByRole('heading', { level: 1, name: 'order.fulfil' }).waitFor();
    assert.match(await page.getByRole('main').innerText(), /hibernating/);
  }));

test('a run without a summary is not lost', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    assert.match(await runs.unprojected(page).first().innerText(), /ord-48271[^]*no summary/);
    await runs.unprojected(page).first().getByRole('link').first().click();
    await page.getByText('No summary row').waitFor();
  }));

test('a run of 5,000 events opens', () =>
  demo.withPage({}, async (page, base) => {
    const response = await page.goto(`${base}/instances/mailbox-newsletter`);
    assert.equal(response.status(), 200);
    await page.getByRole('heading', { level: 1, name: 'mailbox.poll' }).waitFor();
    assert.match(await page.getByRole('main').innerText(), /5,000 events/);
  }));

test('hostile and long text keeps to its row, and can be read in full', () =>
  demo.withPage({ width: 1400 }, async (page, base) => {
    await runs.open(page, base, '?per_page=100');
    const rows = await runs.rows(page).evaluateAll((all) =>
      all.map((row) => ({
        height: row.getBoundingClientRect().height,
        wraps: new Set([...row.querySelectorAll('td.tags .tag')].map((tag) => tag.getBoundingClientRect().top)).size > 1,
        text: row.innerText,
      })));
    for (const { height, wraps, text } of rows) {
      assert.ok(height <= (wraps ? 56 : 47), `a row is ${height} px high: ${text}`);
    }
    const hostile = runs.row(page, 'hostile-2').getByRole('link').first();
    assert.match(await hostile.getAttribute('title'), /^<script>alert\(1\)<\/script>[^]*type$/);
  }));

for (const theme of ['light', 'dark']) {
  test(`a picture of the list in the ${theme} theme`, () =>
    demo.withPage({ theme, width: 1440, height: 900 }, async (page, base) => {
      await runs.open(page, base);
      await screenshot(page, `runs-${theme}`);
    }));
}
