// One run's page, for every situation of the demo: what it says, what it draws, what it offers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { axe, eventually, startDemo } from '../harness.js';
import { assertFits, run, runs, situationsOf } from '../pages.js';

const demo = await startDemo();

/** Situation by name: the sentence it must get. */
const told = new Map(
  [
    ...readFileSync(
      fileURLToPath(
        new URL('../../tests/it/snapshots/it__diagnosis__every_situation_is_explained__diagnoses.snap', import.meta.url),
      ),
      'utf8',
    ).matchAll(/^([a-z][a-z0-9-]+)\n {4}([a-z_]+): ([^]*?)\n {4}(.*)$/gm),
  ].map(([, name, code, sentence, next]) => [name, { code, sentence, next }]),
);

/** Situation by name: its run, and the JSON of it. */
let situations;

before(async () => {
  situations = await situationsOf(demo.base);
});

const tidy = (text) => text.replace(/\s+/g, ' ').trim();
/** Marks that stand for characters nobody can see. */
const plain = (text) => tidy(tidy(text).replace(/⟦U\+[0-9A-F]+⟧|[\u2400-\u2426]|[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, ''));

test('every situation of the catalogue is explained on its page', { timeout: 300_000 }, () =>
  demo.withPage({}, async (page, base) => {
    assert.ok(told.size >= 80, `${told.size} sentences are written down`);
    assert.deepEqual([...told.keys()].filter((name) => !situations.has(name)), [], 'every situation has a run');
    for (const [name, { sentence, next }] of told) {
      const { instance, id, json } = situations.get(name);
      const response = await page.goto(`${base}/instances/${encodeURIComponent(instance)}/runs/${id}`);
      assert.equal(response.status(), 200, name);

      assert.equal(plain(await run.sentence(page).innerText()), plain(sentence), name);
      assert.ok(plain(await run.diagnosis(page).innerText()).includes(plain(next)), `${name}: the next step`);
      const cited = await run.evidence(page).locator('> *').count();
      assert.equal(cited, json.plimsoll.diagnosis.evidence.length, `${name}: its evidence`);

      for (const tag of await run.tags(page).evaluateAll((tags) =>
        tags.map((one) => ({ text: one.innerText.trim(), mark: !!one.querySelector('svg.mark') })))) {
        assert.ok(tag.text && tag.mark, `${name}: a tag is a word and a mark, not ${JSON.stringify(tag)}`);
      }

      const repair = tidy(await run.repair(page).innerText());
      assert.match(repair, /^(Repair: called for repair_needed Preview and repair|No repair [a-z_]+ (Not before [-\d]+ [:\d]+ UTC\. )?\S.*\.)$/, name);

      const units = json.activities.length + json.waits.length;
      if (units <= 60) {
        const drawn = (await run.bars(page)).filter((title) => /^Try \d/.test(title));
        const begun = json.activities.flatMap(({ attempts }) => attempts).filter((attempt) => attempt.started_at);
        // No try comes of an activity whose task is gone.
        const gone = json.tasks.filter((task) => task.task_missing).map((task) => task.activity_execution_id);
        const coming = json.plimsoll.retries.filter((one) => !gone.includes(one.activity_execution_id));
        const ahead = coming.flatMap(({ retry }) =>
          retry.ahead.filter((next) => next.at && !next.reason_cut).slice(0, 4));
        assert.equal(drawn.filter((title) => !/: ahead/.test(title)).length, begun.length, `${name}: attempts`);
        assert.equal(drawn.length - begun.length, ahead.length, `${name}: tries ahead`);
      }
      if (json.plimsoll.drift.length > 0) await run.notice(page, 'The stored summary is stale').waitFor();
    }
  }));

test('a retried activity is drawn try by try, with its pauses and the tries ahead', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    const bars = await run.bars(page);
    const words = bars.map((title) => title.replace(/,.*/, ''));
    assert.deepEqual(words.slice(-7), [
      'Try 1: failed',
      'backoff before the next try',
      'Try 2: failed',
      'backoff before the next try',
      'Try 3: ahead',
      'Try 4: ahead',
      'Try 5: ahead',
    ], bars.join('\n'));
    const certain = bars.filter((title) => title.includes(': ahead') && !title.includes('only if the try before fails'));
    assert.deepEqual(certain.map((title) => title.slice(0, 5)), ['Try 3'], 'the next try depends on nothing');
    const shown = tidy(await run.timeline(page).innerText());
    assert.match(shown, /backoff 15 s/, 'a pause has its length');
    assert.match(bars.join('\n'), /backoff before the next try, .* 5 m$/m, 'one without room beside its folds when pointed at');
    assert.match(shown, /2 m \d+ s idle/, 'and folded time too');
    assert.match(shown, /now 12:00:00/);
    assert.match(shown, /\+15 s 11:57:15/, 'the axis has both times');
    await run.lane(page, 'charge-card').click();
    await run.unit(page).waitFor();
    assert.doesNotMatch(await run.unit(page).innerText(), /No further try/, 'while tries come');
  }));

test('folded time is told wherever it is folded, and no work is ever called idle', () =>
  demo.withPage({}, async (page, base) => {
    for (const [name, idle] of [
      ['waiting-timer', ['10 d 23 h idle', '19 d ahead']],
      ['waiting-signal', ['40 m 55 s idle']],
      ['parent-with-ten-children', ['1 h 14 m idle']],
      ['activity-running-heartbeat', []],
      ['parallel-activities', []],
      ['run-deadline-passed', []],
    ]) {
      const { instance, id } = situations.get(name);
      await page.goto(`${base}/instances/${encodeURIComponent(instance)}/runs/${id}`);
      const folds = await run.timeline(page).locator('.axis text').evaluateAll((labels) =>
        labels.map((label) => label.textContent).filter((text) => / (idle|ahead)$/.test(text)));
      assert.deepEqual(folds, idle, name);
    }
  }));

test('what was due, timed out or was left open is drawn as that', () =>
  demo.withPage({}, async (page, base) => {
    for (const [name, bar] of [
      ['timer-overdue', /^fires, which has passed, 11:57:00/],
      ['condition-timeout-task-lost', /^its timeout, which has passed, 09:30:00/],
      ['activity-running-heartbeat', /^the next heartbeat is due, 12:00:51/],
      ['failed-activity-timeout', /^Try 1: timed out \(start to close\)/],
      ['failed-execution-timeout', /^still open when the run closed, 03:00:00 to 04:00:04, 1 h/],
      ['lease-expired-activity', /^Try 1: its lease ran out/],
      ['retry-task-lost', /^waits, but its task is gone: no worker can take it, 11:34:40 to 12:00:00/],
      ['timer-row-and-task-lost', /^pending, but its task is gone: nothing fires it/],
    ]) {
      const { instance, id } = situations.get(name);
      await page.goto(`${base}/instances/${encodeURIComponent(instance)}/runs/${id}`);
      const bars = await run.bars(page);
      assert.ok(bars.some((title) => bar.test(title)), `${name}:\n${bars.join('\n')}`);
    }
    const closed = situations.get('failed-execution-timeout');
    await page.goto(`${base}/instances/${encodeURIComponent(closed.instance)}/runs/${closed.id}`);
    assert.match(await run.timeline(page).innerText(), /execution deadline 04:00:00/);
    assert.match((await run.column(page, 'Waits', 'Status'))[0], /^left open/);
    const lost = situations.get('lease-expired-activity');
    await page.goto(`${base}/instances/${encodeURIComponent(lost.instance)}/runs/${lost.id}`);
    assert.match(await run.attempts(page, 'render-pdf').last().innerText(), /lease ran out/);
    const chain = situations.get('continue-as-new-chain');
    await page.goto(`${base}/instances/${encodeURIComponent(chain.instance)}/runs/${chain.id}`);
    assert.doesNotMatch(await run.head(page).innerText(), /Parent/, 'the run before is no parent');
  }));

test('no two labels of a timeline overlap', { timeout: 300_000 }, () =>
  demo.withPage({ width: 1280 }, async (page, base) => {
    for (const [name, { instance, id }] of situations) {
      await page.goto(`${base}/instances/${encodeURIComponent(instance)}/runs/${id}`);
      const met = await run.timeline(page).evaluate((timeline) => {
        const labels = [...timeline.querySelectorAll('svg text')]
          .filter((text) => text.checkVisibility())
          .map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }));
        const inside = timeline.getBoundingClientRect();
        return labels.flatMap((a, at) => [
          ...labels.slice(at + 1)
            .filter((b) => a.box.left < b.box.right - 1 && b.box.left < a.box.right - 1
              && a.box.top < b.box.bottom - 4 && b.box.top < a.box.bottom - 4)
            .map((b) => `${a.text} over ${b.text}`),
          ...(a.box.right > inside.right + 1 ? [`${a.text} is cut`] : []),
        ]);
      });
      assert.deepEqual(met, [], name);
      const clocks = await run.timeline(page).locator('.axis text.faint').allTextContents();
      assert.deepEqual([...new Set(clocks)], clocks, `${name}: each tick has a time of its own`);
    }
  }));

test('nothing covers the name of a row, on a phone neither', { timeout: 300_000 }, () =>
  demo.withPage({ width: 360, height: 740 }, async (page, base) => {
    for (const name of ['retrying-mid-backoff', 'parent-with-ten-children', 'waiting-timer', 'failed-activity-after-retries', 'five-thousand-events']) {
      const { instance, id } = situations.get(name);
      await page.goto(`${base}/instances/${encodeURIComponent(instance)}/runs/${id}`);
      const covered = await run.lanes(page).evaluateAll((names) =>
        names.flatMap((name) => {
          name.scrollIntoView({ block: 'center' });
          return [...name.querySelectorAll('bdi, .n')].filter((text) => {
            const { left, right, top, bottom } = text.getBoundingClientRect();
            // What does not take a pointer may cover it all the same.
            const all = [0.1, 0.5, 0.9].flatMap((part) => {
              document.querySelectorAll('.g-front, .g-front *').forEach((over) => (over.style.pointerEvents = 'all'));
              return [document.elementFromPoint(left + (right - left) * part, (top + bottom) / 2)];
            });
            return right > left && !all.every((top) => name.contains(top));
          }).map((text) => text.textContent);
        }));
      assert.deepEqual(covered, [], name);
    }
  }));

test('a row of the timeline opens in place, and has an address', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    await run.lane(page, 'charge-card').click();
    await page.waitForURL(/[?&]unit=activity-/);
    await run.unit(page).getByText('Try 2').waitFor();
    await page.reload();
    await run.unit(page).getByText('Try 2').waitFor();
    await run.lane(page, 'reserve-stock').click();
    await page.waitForURL(/[?&]unit=activity-/);
    await run.unit(page).getByText('reserve-stock').first().waitFor();
    await run.unit(page).getByRole('link', { name: 'Zoom to it' }).click();
    await page.waitForURL(/[?&]from=.*[?&]to=/);
    await run.timeline(page).getByRole('link', { name: 'whole run' }).click();
    await page.waitForURL((url) => !url.search.includes('from='));
    await run.unit(page).getByRole('link', { name: 'Close' }).click();
    await eventually(async () => assert.equal(await run.unit(page).count(), 0));
  }));

test('the table tells the same as the drawing, by keyboard', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    await run.timeline(page).locator('details.twin > summary').focus();
    await page.keyboard.press('Enter');
    const bars = await run.bars(page);
    assert.equal(await run.table(page).locator('tbody tr').count(), bars.length);
    assert.match(tidy(await run.table(page).innerText()), /charge-card.*Try 1 failed.*Try 2 failed/);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL(/[?&]unit=run/);
    await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.id), 'twin-run'));
    assert.ok(await run.table(page).isVisible(), 'the table stays open');
  }));

test('a long run shows its units in groups that open, and stays small', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'mailbox-newsletter');
    const elements = await page.evaluate(() => document.querySelectorAll('*').length);
    assert.ok(elements < 5_000, `${elements} elements`);
    await run.lane(page, '×555').first().click();
    await page.waitForURL(/[?&]group=/);
    assert.match(await run.timeline(page).innerText(), /1 to 50 of 555/);
    await run.timeline(page).getByRole('link', { name: 'Later' }).click();
    await page.waitForURL(/[?&]units=50/);
    assert.match(await run.timeline(page).innerText(), /51 to 100 of 555/);
  }));

test('a long section loads when it is opened', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'mailbox-newsletter');
    const tasks = run.section(page, 'Tasks');
    assert.equal(await tasks.locator('tbody tr').count(), 0);
    await tasks.locator('summary').first().click();
    await eventually(async () => assert.ok((await tasks.locator('tbody tr').count()) >= 50));
  }));

test('what the diagnosis cites can be gone to', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    const links = await run.evidence(page).getByRole('link').evaluateAll((all) => all.map((link) => link.href));
    assert.ok(links.length > 0);
    for (const link of links) {
      await page.goto(link);
      const there = await page.evaluate(() => !!document.getElementById(decodeURIComponent(location.hash.slice(1))));
      assert.ok(there, `${link} leads to a row`);
    }
  }));

test('without scripts the page is whole', () =>
  demo.withPage({ javaScript: false }, async (page, base) => {
    await run.open(page, base, 'mailbox-newsletter');
    await run.sentence(page).waitFor();
    await run.section(page, 'Tasks').locator('summary').first().click();
    await run.section(page, 'Tasks').getByRole('link', { name: /^Show/ }).click();
    await run.section(page, 'Tasks').getByRole('row').nth(2).waitFor();
    await run.open(page, base, 'ord-48301');
    await run.lane(page, 'charge-card').click();
    await run.unit(page).getByText('Try 2').waitFor();
  }));

test('a run whose rows disagree, are missing or are unknown says so', () =>
  demo.withPage({}, async (page, base) => {
    for (const [name, notice] of [
      ['missing-summary', 'No summary row'],
      ['stale-summary', 'The stored summary is stale'],
      ['unknown-future-values', 'Unknown status'],
      ['row-only-activity', 'Rows without typed history'],
    ]) {
      const { instance, id } = situations.get(name);
      await page.goto(`${base}/instances/${encodeURIComponent(instance)}/runs/${id}`);
      await run.notice(page, notice).waitFor();
    }
  }));

test('a range that is no range shows all, and says why', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301', '?from=yesterday');
    assert.match(await run.timeline(page).innerText(), /All of the run is shown: .* is not a time/);
    await run.open(page, base, 'ord-48301', '?from=2026-11-15T12:00&to=2026-11-15T11:00');
    assert.match(await run.timeline(page).innerText(), /ends before it begins/);
    await run.open(page, base, 'ord-48301', '?from=2030-01-01');
    assert.match(await run.timeline(page).innerText(), /all of it is shown/);
  }));

test('a range is chosen on the page', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, 'ord-48301');
    await run.timeline(page).getByText('Zoom', { exact: true }).click();
    const form = run.timeline(page).getByRole('form', { name: 'Zoom' });
    assert.equal(await form.getByLabel('from').inputValue(), '2026-11-15T11:57:00');
    await form.getByLabel('to').fill('2026-11-15T11:58:00');
    await form.getByRole('button', { name: 'Show' }).click();
    await page.waitForURL(/[?&]to=2026-11-15T11%3A58%3A00Z/);
    assert.match(await run.timeline(page).innerText(), /11:57:00 to 11:58:00 UTC/);
    await run.timeline(page).getByRole('link', { name: 'whole run' }).waitFor();
  }));

test('brackets go from failure to failure', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, situations.get('failed-activity-after-retries').instance);
    await page.keyboard.press(']');
    const first = await page.evaluate(() => document.activeElement.innerText);
    assert.match(first, /order\.fulfil/);
    await page.keyboard.press(']');
    assert.match(await page.evaluate(() => document.activeElement.innerText), /charge-card/);
    await page.keyboard.press('[');
    assert.equal(await page.evaluate(() => document.activeElement.innerText), first);
  }));

test('brackets visit each failure once', () =>
  demo.withPage({}, async (page, base) => {
    await run.open(page, base, situations.get('failed-activity-after-retries').instance);
    const met = [];
    for (let presses = 0; presses < 20; presses++) {
      await page.keyboard.press(']');
      const link = await page.evaluate(() => document.activeElement.href);
      if (link === met.at(-1)) break;
      met.push(link);
    }
    const events = met.filter((link) => link.includes('#event-'));
    assert.ok(events.length > 1, `${met}`);
    assert.deepEqual(events, [...new Set(events)]);
  }));

test('pointing at a run of the list tells why it is there', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base, '?instance_id=ord-48301');
    const link = runs.row(page, 'ord-48301').getByRole('link').first();
    await link.hover();
    const card = page.getByRole('tooltip');
    await card.getByText('Attempt 3 of 5 waits for its backoff').waitFor();
    await axe(page);
    await page.keyboard.press('Escape');
    await eventually(async () => assert.ok(!(await card.isVisible())));
    await link.focus();
    await card.getByText('Attempt 3 of 5 waits for its backoff').waitFor();
    const whole = await page.goto(`${await link.evaluate((a) => a.href)}/card`);
    assert.equal(whole.status(), 200);
    await run.sentence(page).waitFor();
  }));

for (const theme of ['light', 'dark']) {
  for (const name of ['retrying-mid-backoff', 'failed-non-retryable', 'lease-expired-activity', 'parent-with-ten-children', 'waiting-signal-with-timeout', 'stale-summary', 'activity-task-lost', 'parallel-mixed', 'continue-as-new-chain', 'cancelled']) {
    test(`the page of ${name} is accessible in the ${theme} theme, and fits a phone`, () =>
      demo.withPage({ theme }, async (page, base) => {
        const { instance, id } = situations.get(name);
        await page.goto(`${base}/instances/${encodeURIComponent(instance)}/runs/${id}`);
        await run.openTable(page);
        await axe(page);
        await run.lanes(page).first().click();
        await run.unit(page).waitFor();
        await axe(page);
        await page.setViewportSize({ width: 360, height: 740 });
        await assertFits(page);
        await axe(page);
      }));
  }
}
