// The README's pictures. They are not compared with those in the repository, whose fonts are
// another machine's; to renew them:
//
//   PLIMSOLL_SCREENSHOTS=docs/screenshots node --test playwright/tests/pictures.test.js

import { test } from 'node:test';

import { screenshot, startDemo } from '../harness.js';
import { assertFits, run, runs } from '../pages.js';

const demo = await startDemo();

for (const theme of ['light', 'dark']) {
  test(`the overview, the list and a run are pictured in the ${theme} theme`, { timeout: 120_000 }, () =>
    demo.withPage({ theme, height: 860 }, async (page, base) => {
      await page.goto(`${base}/`);
      await page.locator('[data-age]').waitFor();
      await assertFits(page);
      await screenshot(page, `overview-${theme}`);

      await runs.open(page, base);
      await assertFits(page);
      await screenshot(page, `runs-${theme}`);

      await run.open(page, base, 'ord-48301');
      await run.sentence(page).waitFor();
      await assertFits(page);
      await screenshot(page, `run-${theme}`);
    }));
}
