// WCAG 2.2 AA as far as a machine can check it, once per distinct page and theme.

import { test } from 'node:test';

import { axe, startDemo } from '../harness.js';
import { query, runs } from '../pages.js';

const demo = await startDemo();

const pages = {
  'the list': (page, base) => runs.open(page, base),
  'the list with the filter form open': async (page, base) => {
    await runs.open(page, base, query.status('completed'));
    await page.getByText('Add filter').first().click();
    await page.getByRole('button', { name: 'Apply' }).waitFor();
  },
  'the list of keys': async (page, base) => {
    await runs.open(page, base);
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  },
  'an empty list': (page, base) => runs.open(page, base, query.empty),
  'a malformed filter': (page, base) => page.goto(`${base}/runs${query.malformed}`),
  'an error': (page, base) => page.goto(`${base}/no-such-page`),
  'the styleguide': (page, base) => page.goto(`${base}/styleguide`),
  'a run': async (page, base) => {
    await runs.open(page, base);
    await page.goto(new URL((await runs.hrefs(page))[0], base).href);
  },
};

for (const theme of ['light', 'dark']) {
  for (const [what, open] of Object.entries(pages)) {
    test(`${what} is accessible in the ${theme} theme`, () =>
      demo.withPage({ theme, expectStatus: [404, 422] }, async (page, base) => {
        await open(page, base);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await axe(page);
      }));
  }
}

test('the list is accessible at 360 px', () =>
  demo.withPage({ width: 360, height: 740 }, async (page, base) => {
    await page.goto(`${base}/runs`);
    await axe(page);
  }));
