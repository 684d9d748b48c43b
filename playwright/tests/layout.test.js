// What must stand together on a run's page, whatever it has to say.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { startDemo } from '../harness.js';
import { run, situationsOf } from '../pages.js';

const demo = await startDemo();

let situations;

before(async () => {
  situations = await situationsOf(demo.base);
});

async function open(page, base, name) {
  const { instance, id } = situations.get(name);
  await page.goto(`${base}/instances/${encodeURIComponent(instance)}/runs/${id}`);
  await run.sentence(page).waitFor();
}

test('a long reason for no repair leaves Export beside it', () =>
  demo.withPage({}, async (page, base) => {
    for (const name of ['waiting-compatible-worker', 'row-only-closed-activity', 'completed']) {
      await open(page, base, name);
      const box = await run.repair(page).boundingBox();
      const button = await run.head(page).getByRole('link', { name: 'Export' }).boundingBox();
      assert.ok(box.x + box.width < button.x, `${name}: the reason is left of the button`);
      assert.ok(button.y < box.y + box.height && box.y < button.y + button.height, `${name}: on one line`);
    }
  }));

test('a time is never broken, however full its table', () =>
  demo.withPage({}, async (page, base) => {
    for (const name of ['retrying-mid-backoff', 'failed-activity-timeout', 'failed-non-retryable']) {
      await open(page, base, name);
      await page.locator('details.more').evaluateAll((all) => all.forEach((details) => (details.open = true)));
      const broken = await page.locator('.part .tries time, .part time.when').evaluateAll((times) =>
        times.filter((time) => {
          const words = document.createRange();
          words.selectNodeContents(time.firstChild);
          return new Set([...words.getClientRects()].map((line) => Math.round(line.top))).size > 1;
        }).map((time) => time.innerText));
      assert.deepEqual(broken, [], name);
    }
  }));

test('the bar beside the diagnosis stands out where somebody has to act', () =>
  demo.withPage({}, async (page, base) => {
    for (const [name, tone] of [
      ['activity-task-lost', 'attn'],
      ['waiting-compatible-worker', 'attn'],
      ['claim-failed', 'attn'],
      ['run-deadline-passed', 'attn'],
      ['row-only-closed-activity', 'attn'],
      ['waiting-signal', 'wait'],
      ['retrying-mid-backoff', 'wait'],
      ['completed', 'ok'],
      ['failed-application', 'fail'],
    ]) {
      await open(page, base, name);
      assert.equal(await run.diagnosis(page).locator('> i').getAttribute('class'), `is-${tone}`, name);
    }
  }));

test('a repair that would be refused for now says until when', () =>
  demo.withPage({}, async (page, base) => {
    await open(page, base, 'repair-backoff');
    assert.match(await run.repair(page).innerText(), /Not before 2026-11-15 12:00:37 UTC/);
    await open(page, base, 'activity-task-lost');
    assert.doesNotMatch(await run.repair(page).innerText(), /Not before/);
  }));

test('a task whose time has not come is not called due', () =>
  demo.withPage({}, async (page, base) => {
    for (const name of ['waiting-timer', 'waiting-signal-with-timeout', 'retrying-mid-backoff']) {
      await open(page, base, name);
      const tasks = await run.section(page, 'Tasks').innerText();
      assert.match(tasks, /waits for its time/, name);
      assert.doesNotMatch(tasks, /is due/, name);
    }
  }));

test('what is missing is announced once', () =>
  demo.withPage({}, async (page, base) => {
    await open(page, base, 'missing-summary');
    assert.equal(await page.getByRole('main').getByRole('status').count(), 1);
  }));

test('an end that no event tells is drawn as its row says', () =>
  demo.withPage({}, async (page, base) => {
    await open(page, base, 'row-only-closed-activity');
    assert.match((await run.bars(page)).join('\n'), /^completed,/m);
    assert.deepEqual((await run.bars(page)).filter((words) => /failed|unsupported/.test(words)), []);
  }));

test('children of one type are told apart wherever they are named', () =>
  demo.withPage({}, async (page, base) => {
    await open(page, base, 'parent-with-ten-children');
    const resumed = await run.column(page, 'Waits', 'Resumed by');
    assert.equal(new Set(resumed).size, 10, resumed.join(', '));
    const told = await run.column(page, 'History', 'What happened');
    const ended = told.filter((words) => /completed$/.test(words));
    assert.equal(new Set(ended).size, 7, ended.join('\n'));
    const child = run.section(page, 'Waits').getByRole('link', { name: 'campaign-winter-nl' });
    const [, anchor] = (await child.getAttribute('href')).match(/#(child-.+)$/);
    assert.match(await page.locator(`[id="${anchor}"]`).innerText(), /campaign-winter-nl/);
  }));

test('rows of the timeline as a table stand under one another', () =>
  demo.withPage({}, async (page, base) => {
    await open(page, base, 'retrying-mid-backoff');
    await run.openTable(page);
    const edges = await run.table(page).locator('tbody td').evaluateAll((cells) =>
      cells.filter((cell) => cell.textContent.trim() && cell === cell.parentElement.querySelector('td'))
        .map((cell) => {
          const words = document.createRange();
          words.selectNodeContents(cell);
          return Math.round(words.getBoundingClientRect().left);
        }));
    assert.equal(new Set(edges).size, 1, `${edges}`);
  }));
