// The overview in a browser: every item leads where it says, charts can be read as tables, and
// the page lives on, whatever happens to the server behind it.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';

import { axe, eventually, screenshot, startDemo, startSeeded } from '../harness.js';

describe('overview', () => {
  let demo;
  before(async () => {
    demo = await startDemo();
  });

  it('is where the brand leads, in both themes', async () => {
    for (const theme of ['light', 'dark']) {
      await demo.withPage({ theme, height: 1600 }, async (page, base) => {
        await page.goto(`${base}/runs`);
        await page.getByRole('link', { name: 'Plimsoll' }).click();
        await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
        assert.equal(new URL(page.url()).pathname, '/waterline/');
        await axe(page);
        await screenshot(page, `overview-${theme}`, { fullPage: true });
      });
    }
  });

  it('has room for a phone', async () => {
    await demo.withPage({ width: 360, height: 800 }, async (page, base) => {
      await page.goto(`${base}/`);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wider <= 0, `${wider} pixels too wide`);
      // Nothing is cut off in its card either, and the days stand below the bars.
      const cut = await page.locator('#overview .scroll[aria-labelledby]').evaluateAll((all) =>
        all.filter((part) => part.scrollWidth > part.clientWidth).map((part) => part.getAttribute('aria-labelledby')),
      );
      assert.deepEqual(cut, []);
      const collide = await page.locator('svg.week').evaluate((plot) => {
        const texts = [...plot.querySelectorAll('text')].map((text) => text.getBoundingClientRect());
        const bars = [...plot.querySelectorAll('rect')].map((bar) => bar.getBoundingClientRect());
        const over = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
        return texts.some((text, n) => bars.some((bar) => over(text, bar)) || texts.some((other, m) => m > n && over(text, other)));
      });
      assert.equal(collide, false, 'labels and bars collide');
      await screenshot(page, 'overview-narrow', { fullPage: true });
    });
  });

  it('names for each thing that needs attention exactly as many runs as its list holds', async () => {
    await demo.withPage({}, async (page, base) => {
      await page.goto(`${base}/`);
      const items = await page.locator('li[data-count]').evaluateAll((all) =>
        all.map((item) => ({ count: Number(item.dataset.count), href: item.querySelector('a').href })),
      );
      const isList = ({ href }) => new URL(href).pathname.endsWith('/runs');
      assert.ok(items.filter(isList).length >= 3, `only ${items.length} items`);
      // What is no run stands on the page itself.
      for (const { href } of items.filter((item) => !isList(item))) {
        assert.equal(await page.locator(new URL(href).hash).count(), 1, href);
      }
      const lines = await page.locator('section:has(#backlog) td a').evaluateAll((all) =>
        all.map((link) => ({ count: Number(link.textContent.match(/^in ([\d,]+) run/)?.[1]), href: link.href })),
      );
      const counted = lines.filter(({ count }) => count > 0);
      assert.ok(counted.length >= 3, `only ${counted.length} lines`);
      for (const { count, href } of [...items.filter(isList), ...counted]) {
        await page.goto(`${href}&per_page=100`);
        const rows = page.locator('#results table.runs tbody tr');
        if (count > 0) await rows.first().waitFor();
        assert.equal(await rows.count(), count, href);
      }
    });
  });

  it('shows its charts as tables too', async () => {
    await demo.withPage({}, async (page, base) => {
      await page.goto(`${base}/`);
      const label = await page.locator('svg.week').getAttribute('aria-label');
      const [, completed, failed] = label.match(/: ([\d,]+) completed, ([\d,]+) failed/);
      await page.getByText('As table').click();
      const sums = await page.locator('#closed-table tbody tr').evaluateAll((rows) =>
        rows.reduce(
          (sum, { cells }) => [sum[0] + Number(cells[1].textContent.replace(',', '')), sum[1] + Number(cells[2].textContent.replace(',', ''))],
          [0, 0],
        ),
      );
      assert.deepEqual(sums, [completed, failed].map((text) => Number(text.replace(',', ''))));
      assert.ok((await page.locator('section:has(#failures) tbody tr').count()) > 0);
    });
  });

  it('refreshes itself, keeps what is open, and keeps the last numbers when nobody answers', async () => {
    await demo.withPage({ expectLost: /\/waterline\/$/ }, async (page, base) => {
      await page.goto(`${base}/`);
      await page.getByText('As table').click();
      const refreshed = page.waitForResponse((response) => response.request().headers()['hx-request'] === 'true');
      assert.equal((await refreshed).status(), 200);
      await eventually(async () => assert.ok(await page.locator('#closed-table[open]').count()));

      const tiles = await page.locator('.tiles').innerText();
      await page.route('**/waterline/', (route) => route.abort());
      await page.locator('[data-lost]').waitFor({ state: 'visible', timeout: 20_000 });
      assert.equal(await page.locator('.tiles').innerText(), tiles);
      assert.equal(await page.locator('.toast').count(), 0);
      // What it said before nobody knows now.
      assert.equal(await page.locator('[data-known]').isVisible(), false);
      await page.unroute('**/waterline/');
      await page.locator('[data-lost]').waitFor({ state: 'hidden', timeout: 20_000 });
    });
  });

  it('gives a request up that nobody answers, says so, and asks again', async () => {
    await demo.withPage({ expectLost: /\/waterline\/$/ }, async (page, base) => {
      await page.goto(`${base}/`);
      const tiles = await page.locator('.tiles').innerText();
      let held = 0;
      await page.route('**/waterline/', () => (held += 1));
      const note = page.locator('[data-lost]');
      await note.waitFor({ state: 'visible', timeout: 30_000 });
      assert.equal(held, 1, 'one at a time');
      assert.equal(await page.locator('.tiles').innerText(), tiles);
      assert.equal(await page.locator('[data-known]').isVisible(), false);
      assert.equal(await page.locator('.toast').count(), 0);
      await axe(page);
      await page.unroute('**/waterline/');
      await note.waitFor({ state: 'hidden', timeout: 30_000 });
      assert.ok(await page.locator('[data-known]').isVisible());
    });
  });

  it('asks seldom while nobody can see it, and at once when somebody does', async () => {
    await demo.withPage({}, async (page, base) => {
      let asked = 0;
      page.on('request', (request) => {
        if (request.headers()['hx-request'] === 'true') asked += 1;
      });
      await page.clock.install();
      await page.goto(`${base}/`);
      await page.evaluate(() => Object.defineProperty(document, 'hidden', { configurable: true, get: () => true }));
      await page.clock.runFor(45_000);
      assert.equal(asked, 0);
      await page.clock.runFor(16_000);
      await eventually(() => assert.equal(asked, 1));
      await page.clock.runFor(20_000);
      assert.equal(asked, 1);
      await page.evaluate(() => delete document.hidden);
      await page.clock.runFor(1_000);
      await eventually(() => assert.equal(asked, 2));
    });
  });

  it('keeps the last numbers while the database is away, says so, and goes on by itself', async () => {
    const seeded = await startSeeded({ runs: '300' });
    await seeded.withPage({}, async (page, base) => {
      await page.goto(`${base}/`);
      const tiles = await page.locator('.tiles').innerText();
      const notice = page.locator('.notice').getByText('The database answers with an error');
      const head = page.locator('[data-known]');
      assert.equal(await notice.count(), 0);
      assert.doesNotMatch(await head.innerText(), /as of/);
      await seeded.away(async () => {
        await notice.waitFor({ timeout: 40_000 });
        assert.equal(await page.locator('.tiles').innerText(), tiles);
        assert.ok(await page.locator('svg.week rect').count());
        assert.equal((await fetch(new URL('/livez', base))).status, 200);
        await page.reload();
        assert.equal(await page.locator('.tiles').innerText(), tiles);
        assert.match(await head.innerText(), /^warning\s*as of .*, \d+ of 13 checks need/);
        const health = await fetch(new URL('/waterline/api/v2/health', base));
        assert.equal((await health.json()).status, 'warning');
      });
      await notice.waitFor({ state: 'detached', timeout: 40_000 });
      assert.equal(await page.locator('.tiles').innerText(), tiles);
    });
  });

  it('works without scripts', async () => {
    await demo.withPage({ javaScript: false }, async (page, base) => {
      await page.goto(`${base}/`);
      await page.getByRole('link', { name: /would wake (it|them)/ }).click();
      await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    });
  });
});
