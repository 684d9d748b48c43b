// With scripts on, the list is replaced without loading the page again, and nobody gets lost.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually, startDemo } from '../harness.js';
import { runs } from '../pages.js';

const demo = await startDemo();

/** Opens the list and marks its document, to see whether it is still the same later. */
async function open(page, base, search) {
  await runs.open(page, base, search);
  await page.evaluate(() => { window.marked = true; });
}
const isSamePage = (page) => page.evaluate(() => window.marked === true);

/** What a screen reader says where the focus is. */
const focusIsOn = (page, name) =>
  eventually(async () =>
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), name));

test('pages, buckets, chips, sizes and order change the list in place', () =>
  demo.withPage({}, async (page, base) => {
    await open(page, base, '?queue=orders&per_page=25');
    for (const [what, click, changed] of [
      ['the pager', runs.older(page), (url) => url.searchParams.has('cursor')],
      ['a bucket', runs.bucket(page, 'Running'), (url) => url.searchParams.get('status_bucket') === 'running'],
      ['a chip', runs.removers(page).first(), (url) => !url.searchParams.has('queue')],
      ['the order', runs.order(page, 'Oldest first'), (url) => url.searchParams.get('sort_direction') === 'asc'],
      ['a size', runs.pageSize(page, 100), (url) => url.searchParams.get('per_page') === '100'],
    ]) {
      await click.click();
      await page.waitForURL(changed);
      assert.ok(await isSamePage(page), `${what} loaded the page again`);
      await focusIsOn(page, `${await runs.rows(page).count()} runs`);
      assert.equal(await page.evaluate(() => scrollY), 0, `${what} leads to the top of the list`);
      const shown = await runs.hrefs(page);
      const other = await page.context().newPage();
      await other.goto(page.url());
      assert.deepEqual(await runs.hrefs(other), shown, `${what} leaves the address of what is shown`);
      await other.close();
    }
  }));

test('Back and Forward walk through what was shown', () =>
  demo.withPage({}, async (page, base) => {
    await open(page, base, '?per_page=25');
    const seen = [[page.url(), await runs.hrefs(page)]];
    for (const click of [runs.older(page), runs.bucket(page, 'Failed')]) {
      const url = page.url();
      await click.click();
      await page.waitForURL((now) => now.href !== url);
      seen.push([page.url(), await runs.hrefs(page)]);
    }
    const shows = ([url, hrefs]) =>
      eventually(async () => {
        assert.equal(page.url(), url);
        assert.deepEqual(await runs.hrefs(page), hrefs);
      });
    await page.goBack();
    await shows(seen[1]);
    await page.goBack();
    await shows(seen[0]);
    await page.goForward();
    await shows(seen[1]);
    const kept = await page.evaluate(() => Object.keys(sessionStorage).concat(Object.keys(localStorage)));
    assert.ok(!kept.some((key) => key.includes('history-cache')), 'no copy of a page stays in the browser');
  }));

test('Ctrl and a click still open another tab', () =>
  demo.withPage({}, async (page, base) => {
    await open(page, base);
    const url = page.url();
    const [tab] = await Promise.all([
      page.context().waitForEvent('page'),
      runs.bucket(page, 'Failed').click({ modifiers: ['Control'] }),
    ]);
    await tab.waitForURL(/status_bucket=failed/);
    assert.equal(page.url(), url);
    await tab.close();
  }));

test('the theme chosen after a change in place keeps the place', () =>
  demo.withPage({}, async (page, base) => {
    await open(page, base);
    await runs.bucket(page, 'Failed').click();
    await page.waitForURL(/status_bucket=failed/);
    await page.getByRole('button', { name: 'dark theme' }).click();
    await eventually(async () => assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark'));
    assert.equal(new URL(page.url()).searchParams.get('status_bucket'), 'failed');
  }));

test('a page that is not ours, such as the login of a proxy, gets the whole window', () =>
  demo.withPage({}, async (page, base) => {
    await open(page, base);
    await page.route(/status_bucket=failed/, (route) =>
      route.fulfill({ status: 200, contentType: 'text/html', body: '<title>x</title><h1>Who are you?</h1>' }));
    await runs.bucket(page, 'Failed').click();
    await page.getByRole('heading', { name: 'Who are you?' }).waitFor();
    assert.match(page.url(), /status_bucket=failed/);
    assert.ok(!(await isSamePage(page)));
  }));

test('without an answer the list stays and the page says so', () =>
  demo.withPage({ expectLost: /status_bucket=failed/ }, async (page, base) => {
    await open(page, base);
    const shown = await runs.hrefs(page);
    const url = page.url();
    await page.route(/status_bucket=failed/, (route) => route.abort());
    await runs.bucket(page, 'Failed').click();
    assert.match(await page.getByRole('alert').innerText(), /No answer/);
    assert.deepEqual(await runs.hrefs(page), shown);
    assert.equal(page.url(), url);
  }));
