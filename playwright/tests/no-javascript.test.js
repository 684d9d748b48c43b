// With scripts switched off, the list still lists, filters, pages, finds and changes its theme.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually, startDemo } from '../harness.js';
import { find, idsOf, runs, theme } from '../pages.js';

const demo = await startDemo();
const plain = (use, options = {}) => demo.withPage({ javaScript: false, ...options }, use);

test('without scripts the list is there', () =>
  plain(async (page, base) => {
    await runs.open(page, base);
    assert.ok((await runs.hrefs(page)).length > 0);
  }));

test('without scripts the form filters and the chip takes it back', () =>
  plain(async (page, base) => {
    await runs.open(page, base);
    const all = await runs.hrefs(page);
    const { instance } = idsOf(all[0]);
    await runs.filter(page, { instance });
    await page.waitForURL((url) => url.searchParams.size > 0);
    for (const href of await runs.hrefs(page)) assert.equal(idsOf(href).instance, instance);
    await runs.removers(page).click();
    await runs.removers(page).waitFor({ state: 'detached' });
    assert.deepEqual(await runs.hrefs(page), all);
  }));

test('without scripts the pages turn', () =>
  plain(async (page, base) => {
    await runs.open(page, base);
    await runs.pageSize(page, 25).click();
    await page.waitForURL(/25/);
    const first = await runs.hrefs(page);
    const firstUrl = page.url();
    await runs.older(page).click();
    await page.waitForURL((url) => url.href !== firstUrl);
    const secondUrl = page.url();
    assert.ok(!(await runs.hrefs(page)).some((href) => first.includes(href)));
    await runs.newer(page).click();
    await page.waitForURL((url) => url.href !== secondUrl);
    assert.deepEqual(await runs.hrefs(page), first);
  }));

test('without scripts the find box finds', () =>
  plain(async (page, base) => {
    await runs.open(page, base);
    const { instance } = idsOf((await runs.hrefs(page))[0]);
    await find.go(page, instance);
    await page.waitForURL((url) => url.pathname.includes('/instances/'));
    assert.equal(idsOf(page.url()).instance, instance);
  }));

test('without scripts the theme changes and stays', () =>
  plain(async (page, base) => {
    await runs.open(page, base);
    assert.equal(await theme.shown(page), 'light');
    await theme.choose(page, 'dark');
    await eventually(async () => assert.equal(await theme.shown(page), 'dark'));
    await page.reload();
    assert.equal(await theme.shown(page), 'dark');
  }));

test('without scripts the filter form pushes the list down instead of covering it', () =>
  plain(async (page, base) => {
    await runs.open(page, base);
    await runs.openForm(page);
    const form = await runs.form(page).boundingBox();
    const list = await runs.table(page).boundingBox();
    assert.ok(list.y >= form.y + form.height);
  }));

test('without scripts a run page opens', () =>
  plain(async (page, base) => {
    await runs.open(page, base);
    const [href] = await runs.hrefs(page);
    const response = await page.goto(new URL(href, base).href);
    assert.equal(response.status(), 200);
    await page.getByRole('heading', { level: 1 }).waitFor();
  }));
