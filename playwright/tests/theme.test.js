// Light and dark.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually, startDemo } from '../harness.js';
import { query, runs, theme } from '../pages.js';

const demo = await startDemo();
const shows = (page, name) =>
  eventually(async () => assert.equal(await theme.shown(page), name, 'the theme on screen'));

for (const preferred of ['light', 'dark']) {
  const other = preferred === 'light' ? 'dark' : 'light';

  test(`the system's ${preferred} theme is followed until another is chosen`, () =>
    demo.withPage({ theme: preferred }, async (page, base) => {
      await runs.open(page, base);
      await shows(page, preferred);

      const before = page.url();
      await theme.choose(page, other);
      await shows(page, other);
      assert.equal(page.url(), before, 'choosing a theme stays on the page');

      await page.reload();
      await shows(page, other);
      await page.goto(`${base}/styleguide`);
      await shows(page, other);

      await theme.choose(page, preferred);
      await shows(page, preferred);
    }));
}

test('choosing a theme keeps the filter in the address', () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base, query.status('completed'));
    await theme.choose(page, 'dark');
    await shows(page, 'dark');
    assert.equal(new URL(page.url()).searchParams.get('status'), 'completed');
  }));
