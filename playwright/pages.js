// How the tests find things on Plimsoll's pages: by role, label and text, as a person or a
// screen reader does. A change of wording is followed here, once.

import assert from 'node:assert/strict';

/** The instance and run that the address of a run page names; the current run has none. */
export function idsOf(href) {
  const found = new URL(href, 'http://127.0.0.1').pathname.match(/\/instances\/([^/]+)(?:\/runs\/([^/]+))?$/);
  assert.ok(found, `${href} is not the address of a run page`);
  return { instance: decodeURIComponent(found[1]), run: found[2] && decodeURIComponent(found[2]) };
}

/** Filters as the address spells them. */
export const query = {
  status: (value) => `?status=${encodeURIComponent(value)}`,
  instance: (value) => `?instance_id=${encodeURIComponent(value)}`,
  /** Well-formed, and true of no run. */
  empty: '?instance_id=no-such-instance',
  malformed: '?status=bogus',
};

export const runs = {
  /** Opens the list; `search` as in the address, `?status=failed`. */
  async open(page, base, search = '') {
    const response = await page.goto(`${base}/runs${search}`);
    await page.getByRole('heading', { level: 1, name: 'Runs', exact: true }).waitFor();
    return response;
  },

  table: (page) => page.getByRole('table', { name: 'Runs', exact: true }),
  rows: (page) => runs.table(page).locator('tbody').getByRole('row'),

  /** The row of an instance. */
  row: (page, instance) => runs.rows(page).filter({ has: page.getByText(instance, { exact: true }) }),

  /** Runs the engine has written no summary for: a table of their own. */
  unprojected: (page) =>
    page.getByRole('table', { name: 'Without a summary' }).locator('tbody').getByRole('row'),

  /** Addresses of the runs on this page, in order. */
  async hrefs(page) {
    return runs.rows(page).evaluateAll((rows) =>
      rows.map(
        (row) =>
          [...row.querySelectorAll('a[href]')]
            .map((link) => new URL(link.href).pathname)
            .find((path) => /\/instances\/[^/]+\/runs\/[^/]+$/.test(path)) ?? null,
      ),
    );
  },

  /** Addresses of all runs that j and k walk, those without a summary included. */
  async walked(page) {
    return page.locator('main table a.go').evaluateAll((links) => links.map((link) => new URL(link.href).pathname));
  },

  /** Text of the cells of each row: one list per row. */
  async cells(page) {
    return runs.rows(page).evaluateAll((rows) =>
      rows.map((row) => [...row.cells].map((cell) => cell.innerText.replace(/\s+/g, ' ').trim())),
    );
  },

  bucket: (page, name) =>
    page.getByRole('main').getByRole('link', { name: new RegExp(`^${name}\\b`) }).first(),

  /** The crosses on the active filters. */
  removers: (page) => page.getByRole('link', { name: /^Remove filter/ }),

  /** What opens and closes the filter form. */
  opener: (page) => page.locator('summary').filter({ hasText: '+ filter' }),
  form: (page) => page.getByRole('form', { name: 'Filters' }),
  field: (page, label) => runs.form(page).getByLabel(label, { exact: true }),

  async openForm(page) {
    if (!(await runs.form(page).isVisible())) await runs.opener(page).click();
    await runs.form(page).waitFor();
  },

  /** Fills the filter form and applies it. */
  async filter(page, fields) {
    await runs.openForm(page);
    for (const [label, value] of Object.entries(fields)) {
      const field = runs.field(page, label);
      const tag = await field.evaluate((element) => element.tagName);
      await (tag === 'SELECT' ? field.selectOption(value) : field.fill(value));
    }
    await runs.form(page).getByRole('button', { name: 'Apply' }).click();
  },

  /** How many rows of how many, and how far it was looked for them. */
  note: (page) => page.getByRole('navigation', { name: 'Pages' }).innerText(),

  newer: (page) => page.getByRole('link', { name: /Newer/ }),
  older: (page) => page.getByRole('link', { name: /Older/ }),
  pageSize: (page, size) => page.getByRole('main').getByRole('link', { name: String(size), exact: true }),
  order: (page, name) => page.getByRole('main').getByRole('link', { name, exact: true }),
};

/** The page of one run. */
export const run = {
  /** Opens the current run of an instance; `search` as in the address. */
  async open(page, base, instance, search = '') {
    const response = await page.goto(`${base}/instances/${encodeURIComponent(instance)}${search}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    return response;
  },

  diagnosis: (page) => page.getByRole('region', { name: 'Diagnosis' }),
  sentence: (page) => run.diagnosis(page).locator('.sentence'),
  evidence: (page) => run.diagnosis(page).getByRole('group', { name: 'Evidence' }),
  head: (page) => page.getByRole('region', { name: 'This run' }),
  tags: (page) => run.head(page).locator('.title .tag > span'),
  repair: (page) => run.head(page).locator('.control'),
  notice: (page, title) => page.getByRole('status').filter({ hasText: title }),

  timeline: (page) => page.getByRole('region', { name: 'Timeline' }),
  lanes: (page) => run.timeline(page).locator('a.lane-name'),
  lane: (page, name) => run.lanes(page).filter({ hasText: name }),
  /** What is drawn, by the words a pointer gets: `Try 1: failed, …`. */
  bars: (page) => run.timeline(page).locator('.lane-bars g > title').allTextContents(),
  unit: (page) => page.locator('#unit'),
  table: (page) => page.getByRole('table', { name: 'Timeline as a table' }),
  openTable: (page) => run.timeline(page).getByText('As a table', { exact: true }).click(),

  /** A section by its title. */
  section: (page, title) => page.getByRole('region', { name: title, exact: true }),

  /** The text of each cell of a column of a section's own table, by the column's name. */
  async column(page, title, name) {
    return run.section(page, title).evaluate((section, wanted) => {
      const table = section.querySelector('table');
      const at = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent.trim() === wanted);
      return [...table.tBodies].flatMap((body) => [...body.rows])
        .filter((row) => !row.matches('.sub, .opened'))
        .map((row) => row.cells[at]?.innerText.replace(/\s+/g, ' ').trim());
    }, name);
  },

  /** The rows of attempts of an activity. */
  attempts: (page, activity) => page.getByRole('group', { name: `Attempts of ${activity}` }).locator('tbody tr'),

  events: (page) => page.locator('table.hist tbody tr:not(.opened)'),
  event: (page, sequence) => page.locator(`#event-${sequence}`),
  async filterEvents(page, fields) {
    const form = page.getByRole('form', { name: 'Filter events' });
    for (const [label, value] of Object.entries(fields)) {
      const field = form.getByLabel(label, { exact: true });
      if (value === true) await field.check();
      else if ((await field.evaluate((element) => element.tagName)) === 'SELECT') await field.selectOption(value);
      else await field.fill(value);
    }
    await form.getByRole('button', { name: 'Filter' }).click();
  },
  async goToEvent(page, where) {
    const form = page.getByRole('form', { name: 'Go to an event' });
    await form.getByLabel('Event number or time').fill(where);
    await form.getByRole('button', { name: 'Go' }).click();
  },
};

/** The zone that times are shown in. */
export const zone = {
  opener: (page) => page.locator('details.zone > summary'),
  async choose(page, name) {
    await zone.opener(page).click();
    await page.getByLabel('Another zone').fill(name);
    await page.getByLabel('Another zone').press('Enter');
  },
};

/** The box in the header that leads to anything with an id. */
export const find = {
  box: (page) => page.getByLabel('Find any id or key'),
  async go(page, text) {
    await find.box(page).fill(text);
    await find.box(page).press('Enter');
  },
};

export const theme = {
  /** Chooses 'light' or 'dark' with the switch on the page. */
  async choose(page, name) {
    const named = { name: new RegExp(`\\b${name}\\b`, 'i') };
    const control = page
      .getByRole('button', named)
      .or(page.getByRole('radio', named))
      .or(page.getByRole('link', named))
      .or(page.getByRole('menuitem', named));
    if (!(await control.first().isVisible())) await page.getByText(/theme/i).first().click();
    await control.first().click();
  },

  /** 'light' or 'dark', by what the eye sees: how bright the page's background is. */
  shown: (page) =>
    page.evaluate(() => {
      const pixel = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      const brightness = (element) => {
        pixel.clearRect(0, 0, 1, 1);
        pixel.fillStyle = getComputedStyle(element).backgroundColor;
        pixel.fillRect(0, 0, 1, 1);
        const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
        return alpha === 0 ? null : (red + green + blue) / 3;
      };
      const shown = brightness(document.body) ?? brightness(document.documentElement) ?? 255;
      return shown > 127 ? 'light' : 'dark';
    }),
};

/** Asserts that the page does not scroll sideways. */
export async function assertFits(page) {
  const { scroll, inner, widest } = await page.evaluate(() => ({
    scroll: document.scrollingElement.scrollWidth,
    inner: innerWidth,
    widest: [...document.querySelectorAll('body *')]
      .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
      .slice(0, 5)
      .map((element) => element.outerHTML.slice(0, 120)),
  }));
  assert.ok(
    scroll <= inner,
    `${page.url()} is ${scroll} px wide in a window of ${inner} px; over the edge:\n${widest.join('\n')}`,
  );
}

/** The demo's situations by name: the run of each, and the JSON of it. */
export async function situationsOf(base) {
  const get = async (below) => (await fetch(`${base}/api/${below}`)).json();
  const situations = new Map();
  for (const bucket of ['running', 'completed', 'failed', 'cancelled', 'terminated']) {
    for (let page = 1; ; page += 1) {
      const { data } = await get(`flows/${bucket}?per_page=100&page=${page}`);
      for (const { instance_id: instance, run_id: id } of data) {
        const json = await get(`instances/${encodeURIComponent(instance)}/runs/${id}`);
        const name = json.visibility_labels?.plimsoll_situation;
        // Other runs of its instance share the label; the one it is about tells the story.
        if (name && json.memo?.['plimsoll.story']) situations.set(name, { instance, id, json });
      }
      if (data.length < 100) break;
    }
  }
  return situations;
}
