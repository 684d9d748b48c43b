// WCAG 2.2 AA as far as a machine can check it, once per distinct page and theme.

import { test } from 'node:test';

import { axe, startDemo } from '../harness.js';
import { query, runs } from '../pages.js';

const demo = await startDemo();

const pages = {
  'the list': (page, base) => runs.open(page, base),
  'the list with the filter form open': async (page, base) => {
    await runs.open(page, base, query.status('completed'));
    await runs.openForm(page);
  },
  'the list of keys': async (page, base) => {
    await runs.open(page, base);
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  },
  'a filtered list': (page, base) => runs.open(page, base, '?status_bucket=failed&failure_category=activity&queue=orders'),
  'the runs that need repair': (page, base) => runs.open(page, base, '?needs_repair=1'),
  'an empty list': (page, base) => runs.open(page, base, query.empty),
  'a malformed filter': (page, base) => page.goto(`${base}/runs${query.malformed}`),
  'an error': (page, base) => page.goto(`${base}/no-such-page`),
  'find without a result': (page, base) => page.goto(`${base}/find?q=no-such-id-anywhere`),
  'an unknown run': (page, base) => page.goto(`${base}/instances/no-such-instance`),
  'the styleguide': (page, base) => page.goto(`${base}/styleguide`),
  ...Object.fromEntries(
    [
      ['a retrying run', 'ord-48301'],
      ['a failed run with hostile text', 'hostile-1'],
      ['a run without a summary', 'ord-48271'],
      ['a run with a status nobody knows', 'ord-48310'],
      ['a run with 5,000 events', 'mailbox-newsletter'],
    ].map(([what, instance]) => [what, (page, base) => page.goto(`${base}/instances/${instance}`)]),
  ),
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

test('the open filter form is accessible at 360 px', () =>
  demo.withPage({ width: 360, height: 740 }, async (page, base) => {
    await runs.open(page, base);
    await runs.openForm(page);
    await axe(page);
  }));
