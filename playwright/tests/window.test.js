// A filter no index serves looks at a bounded number of rows, says so, and goes on when asked.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startSeeded } from '../harness.js';
import { idsOf, runs } from '../pages.js';

const seeded = await startSeeded({ runs: 5_600 });

for (const javaScript of [true, false]) {
  test(`what lies beyond the first look is found by looking further, scripts ${javaScript ? 'on' : 'off'}`, () =>
    seeded.withPage({ javaScript }, async (page, base) => {
      await runs.open(page, base, '?sort_direction=asc');
      const { instance } = idsOf((await runs.hrefs(page))[0]);

      await runs.open(page, base, `?instance_id_contains=${encodeURIComponent(instance)}`);
      await page.getByText('No match among the runs looked at so far.').waitFor();
      await page.getByText('looked at 5,000 runs, back to').waitFor();

      await page.getByRole('link', { name: 'Look further', exact: true }).click();
      await runs.row(page, instance).waitFor();
      assert.equal((await runs.hrefs(page)).length, 1);
    }));
}
