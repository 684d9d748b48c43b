// What the sections of a run's page tell: attempts, exceptions, tasks, history, payloads.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { axe, eventually, screenshot, startDemo } from '../harness.js';
import { assertFits, run } from '../pages.js';

const demo = await startDemo();
const LONG = 'mailbox-newsletter'; // five thousand events

test('each attempt is told, and the retry that comes next', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    const attempts = run.attempts(page, 'charge-card');
    assert.equal(await attempts.count(), 2);
    assert.match(await attempts.nth(0).innerText(), /failed[\s\S]*Gateway did not answer within 10 s/);
    const activities = run.section(page, 'Activities');
    assert.match(await activities.innerText(), /Retry: attempt 3 of 5, after attempt 2 failed, waits 5 m, due 2026-11-15/);
    assert.deepEqual(await run.column(page, 'Activities', 'Attempts'), ['1/1', '2/5']);
  }));

test('an exception has its category in a column of its own, with word and mark', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    const categories = await run.column(page, 'Exceptions', 'Category');
    assert.deepEqual(categories, ['activity retried', 'activity retried']);
    const cell = run.section(page, 'Exceptions').locator('td.tags').first();
    assert.equal(await cell.locator('svg.mark').count(), await cell.locator('.tag').count());
  }));

test('a non-retryable failure is marked, and the tries it cut short are explained', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'sub-7720');
    assert.ok((await run.column(page, 'Exceptions', 'Category')).some((text) => text.includes('non-retryable')));
    assert.match(await run.section(page, 'Activities').innerText(), /non-retryable/);
  }));

test('a row named elsewhere is shown without leaving the page', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    const url = page.url();
    await run.section(page, 'Exceptions').getByRole('link', { name: 'activity charge-card' }).first().click();
    await page.waitForURL(/#activity-/);
    assert.equal(page.url().split('#')[0], url);
  }));

test('an event opens its payload below itself, and puts it away', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    const link = run.event(page, 1).getByRole('link', { name: 'StartAccepted' });
    await link.click();
    const opened = page.locator('tr.opened');
    await opened.waitFor();
    assert.match(await opened.innerText(), /"workflow_type"/);
    await link.click();
    await eventually(async () => assert.equal(await opened.count(), 0));
  }));

test('a long history is read a window at a time, by number, time and failure', { timeout: 120_000 }, () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, LONG);
    assert.equal(await run.events(page).count(), 0, 'nothing of it stands in the page');
    await page.locator('#history summary').first().click();
    await run.events(page).first().waitFor();
    assert.equal(await run.events(page).count(), 200);
    const history = await page.locator('a[href$="/history"]').first().getAttribute('href');
    await page.goto(new URL(history, base).href);
    assert.equal(await run.events(page).count(), 200);
    const newest = Number(await run.events(page).first().locator('td').first().innerText());
    await page.getByRole('link', { name: 'Older', exact: true }).click();
    await eventually(async () =>
      assert.equal(Number(await run.events(page).first().locator('td').first().innerText()), newest - 200));
    await run.goToEvent(page, '2500');
    await page.waitForURL(/at=2500#event-2500$/);
    assert.ok(await run.event(page, 2500).isVisible());
    assert.ok(await run.event(page, 2500).evaluate((row) => row.matches('.chosen:target')));
    assert.ok((await page.locator('*').count()) < 5_000);

    await run.filterEvents(page, { Type: 'WorkflowStarted' });
    await eventually(async () => assert.equal(await run.events(page).count(), 1));
    assert.match(await run.events(page).first().innerText(), /WorkflowStarted/);
  }));

test('events are filtered by failure and by text', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    await run.filterEvents(page, { 'failures only': true });
    await eventually(async () => assert.equal(await run.events(page).count(), 2));
    await run.filterEvents(page, { Text: 'no such text' });
    await eventually(async () => assert.equal(await run.events(page).count(), 0));
    await page.goto(`${base}/instances/ord-48301`);
    await page.getByRole('link', { name: 'Earlier failure' }).click();
    await page.waitForURL(/at=10#event-10$/);
  }));

test('another failure is offered only where there may be one', () =>
  demo.withPage({}, async (page, base) => {
    const links = () => page.locator('#history').getByRole('link', { name: / failure$/ }).allInnerTexts();
    await run.open(page, base, 'ord-48303');
    assert.deepEqual(await links(), []);
    await run.open(page, base, 'ord-48301');
    assert.deepEqual(await links(), ['Earlier failure']);
  }));

test('an exception that a task could not restore says so and leads to the task', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48071');
    const exceptions = run.section(page, 'Exceptions');
    await exceptions.getByText('Trace, cause and replay').click();
    assert.match(await exceptions.innerText(), /blocked\s+Replay is blocked: the deployed code has no exception class App\\Legacy\\OrderRejected/);
    await exceptions.getByRole('link', { name: 'The task that is blocked' }).click();
    await page.waitForURL(/#task-/);
  }));

test('a payload can be copied and kept', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    const data = run.section(page, 'Memo, attributes and payloads');
    assert.match(await data.locator('pre').first().innerText(), /"ORD-48301",\s+7700/);
    const coming = page.waitForEvent('download');
    await data.getByRole('link', { name: 'Download' }).first().click();
    assert.equal((await coming).suggestedFilename(), 'run-arguments.json');
  }));

test('a payload too long for the page is fetched when asked for', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'import-supplier-ganymede');
    const data = run.section(page, 'Memo, attributes and payloads');
    await data.getByRole('link', { name: 'Load arguments' }).click();
    await eventually(async () =>
      assert.match(await data.innerText(), /KiB[\s\S]*the download has it whole/));
  }));

test('the sections are whole without scripts', () =>
  demo.withPage({ javaScript: false }, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    assert.equal(await run.attempts(page, 'charge-card').count(), 2);
    assert.equal(await run.events(page).count(), 10);
    await run.event(page, 1).getByRole('link', { name: 'StartAccepted' }).click();
    await page.getByRole('heading', { level: 1, name: 'Payload of event 1' }).waitFor();
    await run.open(page, base, LONG);
    await page.locator('#history summary').first().click();
    await page.locator('#history').getByRole('link', { name: /^Show/ }).click();
    await page.waitForURL(/\/history/);
    assert.equal(await run.events(page).count(), 200);
    await run.filterEvents(page, { 'failures only': true });
    assert.match(await page.locator('#events').innerText(), /looked at/);
  }));

const shown = {
  'a retrying run': 'ord-48301',
  'a run with hostile text': 'hostile-1',
  'a run with children': 'campaign-winter',
  'a run whose retry task is lost': 'ord-48253',
};
for (const theme of ['light', 'dark']) {
  for (const [what, instance] of Object.entries(shown)) {
    test(`the open sections of ${what} are accessible in the ${theme} theme`, { timeout: 120_000 }, () =>
      demo.withPage({ theme }, async (page, base) => {
        await run.open(page, base, instance);
        await page.evaluate(() => document.querySelectorAll('main details').forEach((of) => (of.open = true)));
        await axe(page);
        await screenshot(page, `sections-${instance}-${theme}`, { fullPage: true });
      }));
  }
  test(`the history page is accessible in the ${theme} theme`, () =>
    demo.withPage({ theme }, async (page, base) => {
      await run.open(page, base, 'ord-48301');
      await page.getByRole('link', { name: 'Earlier failure' }).click();
      await page.waitForURL(/history/);
      await page.locator('table.hist').waitFor();
      await axe(page);
    }));
}

test('open sections, history and payload fit 360 px', { timeout: 120_000 }, () =>
  demo.withPage({ width: 360, height: 740 }, async (page, base) => {
    for (const instance of Object.values(shown)) {
      await run.open(page, base, instance);
      await page.evaluate(() => document.querySelectorAll('main details').forEach((of) => (of.open = true)));
      await assertFits(page);
      await screenshot(page, `sections-${instance}-narrow`, { fullPage: true });
    }
    await page.getByRole('link', { name: 'Earlier failure' }).first().click();
    await page.waitForURL(/history/);
    await assertFits(page);
    await axe(page);
  }));
