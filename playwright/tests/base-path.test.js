// Below any base path, as behind a proxy: everything loads, and no link leads out of it.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startDemo } from '../harness.js';
import { find, idsOf, query, runs, theme } from '../pages.js';

for (const basePath of ['/', '/x', '/x/y']) {
  test(`everything works below ${basePath}`, async () => {
    const demo = await startDemo({ basePath });
    const below = basePath === '/' ? '/' : `${basePath}/`;
    assert.ok(`${new URL(demo.base).pathname}/`.replace('//', '/') === below, `the demo printed ${demo.base}`);

    await demo.withPage({}, async (page, base) => {
      const answers = [];
      page.on('response', (response) => answers.push(response));

      const visit = async () => {
        const addresses = await page.evaluate(() =>
          [...document.querySelectorAll('[href], [src], [action], [hx-get], [hx-post], [data-href]')].flatMap((element) =>
            ['href', 'src', 'action', 'hx-get', 'hx-post', 'data-href']
              .filter((name) => element.hasAttribute(name))
              .map((name) => [name, element.getAttribute(name)]),
          ),
        );
        for (const [name, address] of addresses) {
          const { origin, pathname } = new URL(address, page.url());
          assert.ok(
            origin === new URL(base).origin && `${pathname}/`.startsWith(below),
            `${page.url()} has ${name}="${address}", which is not below ${basePath}`,
          );
        }
      };

      await page.goto(`${base}/`);
      await visit();
      await runs.open(page, base);
      await visit();
      const [href] = await runs.hrefs(page);
      await runs.rows(page).first().getByRole('link').first().click();
      await page.waitForURL((url) => url.pathname === href);
      await visit();
      await find.go(page, idsOf(href).instance);
      await page.waitForURL((url) => url.pathname.includes('/instances/'));
      await runs.open(page, base, query.status('completed'));
      await theme.choose(page, 'dark');
      await page.waitForURL((url) => url.searchParams.get('status') === 'completed');
      await runs.removers(page).first().click();
      await runs.removers(page).waitFor({ state: 'detached' });
      await page.goto(`${base}/styleguide`);
      await visit();

      const assets = answers.filter((answer) => !answer.request().isNavigationRequest());
      assert.ok(assets.length > 0, 'the pages load their assets');
      for (const answer of answers) {
        const { pathname } = new URL(answer.url());
        assert.ok(answer.status() < 400, `${answer.url()} says ${answer.status()}`);
        assert.ok(`${pathname}/`.startsWith(below), `${answer.url()} is not below ${basePath}`);
      }
      for (const asset of assets) assert.ok([200, 304].includes(asset.status()), `${asset.url()} says ${asset.status()}`);
    });
  });
}
