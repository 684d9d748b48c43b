// Pictures of what operators meet, for the README and for eyes: ten situations in both themes,
// and what colour alone must never tell, without colour.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { screenshot, startDemo } from '../harness.js';
import { assertFits, run, situationsOf } from '../pages.js';

const demo = await startDemo();

let situations;

before(async () => {
  situations = await situationsOf(demo.base);
});

const pictured = [
  'completed',
  'retrying-mid-backoff',
  'failed-non-retryable',
  'activity-task-lost',
  'lease-expired-activity',
  'replay-blocked-history-shape',
  'waiting-signal-with-timeout',
  'parent-with-ten-children',
  'parallel-mixed',
  'five-thousand-events',
];

for (const theme of ['light', 'dark']) {
  test(`ten situations are pictured in the ${theme} theme`, { timeout: 240_000 }, () =>
    demo.withPage({ theme }, async (page, base) => {
      for (const name of pictured) {
        const found = situations.get(name);
        assert.ok(found, `${name} is a situation of the demo`);
        await page.goto(`${base}/instances/${encodeURIComponent(found.instance)}/runs/${found.id}`);
        await run.sentence(page).waitFor();
        await assertFits(page);
        await screenshot(page, `situation-${name}-${theme}`);
      }
    }));
}

test('statuses are told apart without colour', { timeout: 120_000 }, () =>
  demo.withPage({}, async (page, base) => {
    await page.goto(`${base}/styleguide`);
    await page.evaluate(() => {
      document.documentElement.style.filter = 'grayscale(1)';
    });
    await screenshot(page, 'statuses-grey', { fullPage: true });
    const tags = await page.locator('.tag').evaluateAll((tags) =>
      tags.map((tag) => [tag.innerText.trim(), tag.querySelector('svg.mark use, svg.mark')?.outerHTML ?? '']));
    const marks = new Map();
    for (const [word, mark] of tags) {
      assert.ok(word && mark, `${word || 'a tag'} has a word and a mark`);
      assert.ok(!marks.has(word) || marks.get(word) === mark, `${word} always has the same mark`);
      marks.set(word, mark);
    }
    assert.ok(marks.size >= 8, `${marks.size} different words`);
    await page.goto(`${base}/runs`);
    await page.evaluate(() => {
      document.documentElement.style.filter = 'grayscale(1)';
    });
    await screenshot(page, 'runs-grey');
  }));
