// The list and a run's page without a mouse.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually, startDemo } from '../harness.js';
import { find, run, runs } from '../pages.js';

const demo = await startDemo();

const focused = (page) =>
  page.evaluate(() => ({
    text: document.activeElement.innerText?.trim() ?? '',
    tag: document.activeElement.tagName,
    row: [null, ...document.querySelectorAll('main tbody tr')].indexOf(document.activeElement.closest('tbody tr')) - 1,
    ring: getComputedStyle(document.activeElement).outlineStyle,
  }));

const rowIs = (page, row) =>
  eventually(async () => assert.equal((await focused(page)).row, row, 'the row in focus'));

test('the first Tab offers to skip to the content, and does', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    await page.keyboard.press('Tab');
    const first = await focused(page);
    assert.equal(first.tag, 'A');
    assert.match(first.text, /skip/i);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    const inside = await page.evaluate(() => !!document.activeElement.closest('main'));
    assert.ok(inside, 'the next stop is inside the content');
  }));

test('every stop of the Tab key can be seen and they come in reading order', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    let previous = null;
    for (let stop = 0; stop < 25; stop += 1) {
      await page.keyboard.press('Tab');
      const { ring, ordered, visible, what } = await page.evaluate((before) => {
        const now = document.activeElement;
        const earlier = before === null ? null : document.querySelector('[data-tested-stop]');
        const box = now.getBoundingClientRect();
        const found = {
          ring: getComputedStyle(now).outlineStyle !== 'none' || getComputedStyle(now).boxShadow !== 'none',
          ordered: !earlier || !!(earlier.compareDocumentPosition(now) & Node.DOCUMENT_POSITION_FOLLOWING),
          visible: box.width > 0 && box.height > 0,
          what: now.outerHTML.slice(0, 120),
        };
        earlier?.removeAttribute('data-tested-stop');
        now.setAttribute('data-tested-stop', '');
        return found;
      }, previous);
      previous = stop;
      assert.ok(visible, `focus is on something invisible: ${what}`);
      assert.ok(ring, `focus cannot be seen on: ${what}`);
      assert.ok(ordered, `focus jumped back to: ${what}`);
    }
  }));

test('/ goes to the find box, and letters typed there stay letters', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    await page.keyboard.press('/');
    await eventually(async () =>
      assert.ok(await find.box(page).evaluate((box) => box === document.activeElement)));
    await page.keyboard.type('jk/');
    assert.equal(await find.box(page).inputValue(), 'jk/');
  }));

test('j and k walk the rows, and Enter opens the one in focus', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    const hrefs = await runs.walked(page);
    await page.keyboard.press('j');
    await rowIs(page, 0);
    await page.keyboard.press('j');
    await rowIs(page, 1);
    await page.keyboard.press('j');
    await rowIs(page, 2);
    await page.keyboard.press('k');
    await rowIs(page, 1);
    await page.keyboard.press('k');
    await page.keyboard.press('k');
    await rowIs(page, 0);
    await page.keyboard.press('j');
    await rowIs(page, 1);
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.pathname === hrefs[1]);
  }));

test('a shortcut with Ctrl or Alt is left to the browser', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    await page.keyboard.press('Control+j');
    await page.keyboard.press('Alt+j');
    assert.equal((await focused(page)).row, -1);
  }));

test('the keys can be looked up, and turned off for good', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    await page.keyboard.press('?');
    const keys = page.getByRole('dialog', { name: 'Keyboard' });
    await keys.getByLabel('Use these keys').uncheck();
    await page.keyboard.press('Escape');
    await keys.waitFor({ state: 'hidden' });
    for (const visit of ['same page', 'next page']) {
      await page.keyboard.press('j');
      assert.equal((await focused(page)).row, -1, `j does nothing on the ${visit}`);
      await page.reload();
    }
  }));

test('the filter form is filled and sent with keys alone', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    await runs.opener(page).focus();
    await page.keyboard.press('Enter');
    await runs.field(page, 'instance').focus();
    await page.keyboard.type('no-such-instance');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => [...url.searchParams.values()].includes('no-such-instance'));
    assert.ok((await runs.removers(page).count()) > 0);
  }));

test('Escape closes the filter form and returns to what opened it', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    await runs.openForm(page);
    await runs.field(page, 'queue').focus();
    await page.keyboard.press('Escape');
    await runs.form(page).waitFor({ state: 'hidden' });
    assert.match((await focused(page)).text, /filter/);
  }));

test('the filter form never covers what has the focus', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    await runs.openForm(page);
    await runs.form(page).getByRole('link', { name: 'Clear all' }).focus();
    await page.keyboard.press('Tab');
    await runs.form(page).waitFor({ state: 'hidden' });
    const clear = await page.evaluate(() => {
      const { left, top, width, height } = document.activeElement.getBoundingClientRect();
      return document.activeElement.contains(document.elementFromPoint(left + width / 2, top + height / 2));
    });
    assert.ok(clear, 'the link in focus can be seen');
  }));

test('g and a letter go to a page of the menu', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    for (const [key, path] of [['o', /\/waterline\/$/], ['r', /\/runs$/], ['b', /\/bundles$/]]) {
      await page.keyboard.press('g');
      await page.keyboard.press(key);
      await page.waitForURL(path);
      await page.getByRole('heading', { level: 1 }).waitFor();
    }
  }));

const focusOn = (page, id) =>
  eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.id), id, 'the focus'));

test('the focus and the page stay where they are while the timeline changes', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    for (const _ of ['run', 'reserve-stock']) await page.keyboard.press('j');
    const row = await page.evaluate(() => document.activeElement.id);
    assert.match(row, /^lane-activity-/);
    const scrolled = await page.evaluate(() => scrollY);
    await page.keyboard.press('Enter');
    await run.unit(page).waitFor();
    await focusOn(page, row);
    assert.equal(await page.evaluate(() => scrollY), scrolled, 'the page does not move');
    await run.unit(page).getByRole('link', { name: 'Zoom to it' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(/[?&]from=/);
    await focusOn(page, row);
    await run.timeline(page).getByRole('link', { name: 'whole run' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => !url.search.includes('from='));
    await focusOn(page, row);
    await run.unit(page).getByRole('link', { name: 'Close' }).focus();
    await page.keyboard.press('Enter');
    await run.unit(page).waitFor({ state: 'hidden' });
    await focusOn(page, row);
    await page.keyboard.press('j');
    assert.match(await page.evaluate(() => document.activeElement.innerText), /charge-card/, 'j goes on from there');
  }));

test('j and k walk the rows of the sections and of the history', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    const walked = [];
    for (let n = 0; n < 40; n += 1) {
      await page.keyboard.press('j');
      walked.push(await page.evaluate(() => document.activeElement.closest('section[id]')?.id));
    }
    for (const section of ['timeline', 'activities', 'exceptions', 'tasks', 'waits', 'history']) {
      assert.ok(walked.includes(section), `${section} in ${[...new Set(walked)]}`);
    }
    const event = await page.locator('a[href*="/history?at="]').first().evaluate((link) => link.href);
    await page.goto(event.replace(/\?.*/, ''));
    const rows = await run.events(page).evaluateAll((all) => all.map((row) => row.id));
    for (const row of rows.slice(0, 3)) {
      await page.keyboard.press('j');
      assert.equal(await page.evaluate(() => document.activeElement.closest('tr').id), row);
    }
    await page.keyboard.press('k');
    assert.equal(await page.evaluate(() => document.activeElement.closest('tr').id), rows[1]);
    await page.keyboard.press('Enter');
    await page.locator('tr.opened').waitFor();
  }));

test('brackets follow time through a history, whichever way it is listed', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    const event = await page.locator('a[href*="/history?at="]').first().evaluate((link) => link.href);
    for (const order of ['', '?order=oldest']) {
      await page.goto(event.replace(/\?.*/, order));
      const failed = await page.locator('.hist [data-failure]').evaluateAll((all) =>
        all.map((link) => Number(link.textContent)).sort((a, b) => a - b));
      assert.ok(failed.length > 1);
      const at = () => page.evaluate(() => Number(document.activeElement.closest('tr').id.replace('event-', '')));
      for (const sequence of failed) {
        await page.keyboard.press(']');
        assert.equal(await at(), sequence, `${order}: the next one`);
      }
      await page.keyboard.press('[');
      assert.equal(await at(), failed.at(-2), `${order}: and back`);
    }
  }));
