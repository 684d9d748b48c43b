// Several runs repaired together: chosen in the list, previewed by kind, begun with a reason, told
// run by run; a run that changed meanwhile is left alone.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { axe, screenshot, startDemo } from '../harness.js';
import { assertFits, runs, situationsOf } from '../pages.js';

const demo = await startDemo();

let situations;

before(async () => {
  situations = await situationsOf(demo.base);
});

const bulk = (page) => page.getByRole('form', { name: 'Repair several runs' });
const pick = (page, instance) => page.getByRole('checkbox', { name: `Select ${instance}`, exact: true });
const form = (page) => page.getByRole('form', { name: 'Repair these runs' });

async function freeze(page, base, names) {
  await runs.open(page, base, '?needs_repair=1');
  for (const name of names) await pick(page, situations.get(name).instance).check();
  await bulk(page).getByRole('button', { name: 'Preview repair of selected' }).click();
  await page.getByRole('heading', { name: `To be repaired: ${names.length}` }).waitFor();
}

async function begin(page, reason, count) {
  await form(page).getByLabel('Reason').fill(reason);
  await form(page).getByLabel('How many runs').fill(String(count));
  await form(page).getByRole('button', { name: /^Repair/ }).click();
}

async function repairOne(base, { instance, id }) {
  const answer = await fetch(`${base}/api/instances/${encodeURIComponent(instance)}/runs/${id}/repair`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ reason: 'a colleague was faster' }),
  });
  assert.equal(answer.status, 200, await answer.text());
}

test('bulk with a member that changed', { timeout: 120_000 }, () =>
  demo.withPage({ expectStatus: [422] }, async (page, base) => {
    await freeze(page, base, ['activity-task-lost', 'signal-task-lost', 'update-task-lost']);
    await axe(page);
    await page.locator('details.group').first().locator('summary').click();
    await screenshot(page, 'bulk-preview', { fullPage: true });

    await begin(page, '   ', 3);
    await page.getByRole('alert').getByText('Say why').waitFor();
    await begin(page, 'the queue was flushed', 30);
    await page.getByRole('alert').getByText('Say how many runs are repaired: 3').waitFor();
    assert.equal(await form(page).getByLabel('Reason').inputValue(), 'the queue was flushed');

    await repairOne(base, situations.get('signal-task-lost'));
    await begin(page, 'the queue was flushed', 3);
    await page.getByRole('status').getByText('2 repaired, 1 skipped').waitFor();
    const report = page.getByRole('table', { name: 'Run by run' });
    const skipped = report.getByRole('row').filter({ hasText: situations.get('signal-task-lost').instance });
    assert.match(await skipped.innerText(), /repair_not_needed|state_changed/);
    await axe(page);
    await screenshot(page, 'bulk-report', { fullPage: true });

    const told = await report.innerText();
    await page.reload();
    assert.equal(await report.innerText(), told, 'a reload does nothing');
    await page.getByRole('link', { name: 'The command that records it' }).first().click();
    await page.locator('#commands').getByText('the queue was flushed', { exact: true }).waitFor();
  }));

test('list, preview and report fit 360 px in the dark', { timeout: 120_000 }, () =>
  demo.withPage({ theme: 'dark', width: 360, height: 740 }, async (page, base) => {
    await runs.open(page, base, '?needs_repair=1');
    await assertFits(page);
    await screenshot(page, 'bulk-list-narrow');
    await freeze(page, base, ['lease-expired-activity']);
    await page.locator('details.group summary').click();
    await assertFits(page);
    await axe(page);
    await screenshot(page, 'bulk-preview-narrow', { fullPage: true });
    await begin(page, 'from the phone', 1);
    await page.getByRole('status').getByText('1 repaired').waitFor();
    await assertFits(page);
    await axe(page);
    await screenshot(page, 'bulk-report-narrow', { fullPage: true });
  }));

test('it works without scripts', { timeout: 120_000 }, () =>
  demo.withPage({ javaScript: false }, async (page, base) => {
    await runs.open(page, base, '?needs_repair=1');
    const boxes = page.getByRole('checkbox', { name: /^Select / });
    await boxes.first().check();
    await bulk(page).getByRole('button', { name: 'Preview repair of selected' }).click();
    while (await page.getByRole('link', { name: 'How far is it?' }).count()) {
      await page.getByRole('link', { name: 'How far is it?' }).click();
    }
    await page.getByRole('heading', { name: /To be repaired: 1|Nothing to repair/ }).waitFor();
  }));

test('all that match is stopped on the way, by keyboard', { timeout: 120_000 }, () =>
  demo.withPage({}, async (page, base) => {
    await runs.open(page, base);
    assert.equal(await bulk(page).getByRole('button', { name: /all that match/ }).count(), 0, 'no filter, no all');
    await runs.open(page, base, '?needs_repair=1');
    await screenshot(page, 'bulk-list', { fullPage: true });
    await axe(page);
    await bulk(page).getByRole('button', { name: /all that match/ }).press('Enter');
    const heading = page.getByRole('heading', { name: /^To be repaired/ });
    await heading.waitFor();
    const all = Number((await heading.innerText()).match(/\d+/)[0]);
    assert.ok(all > 5, `${all} runs`);
    await screenshot(page, 'bulk-preview-many', { fullPage: true });
    await begin(page, 'stop me', all);
    const stop = page.getByRole('button', { name: 'Stop' });
    await stop.press('Enter');
    await page.getByRole('status').getByText(/skipped/).waitFor();
    assert.ok((await page.getByText('stopped', { exact: true }).count()) > 0);
    await page.getByRole('link', { name: 'bulk repairs' }).click();
    await page.getByText('stop me').waitFor();
    await axe(page);
  }));

test('its progress is told although one answer never comes', { timeout: 120_000 }, async () => {
  const other = await startDemo();
  await other.withPage({ expectLost: /\/repairs\// }, async (page, base) => {
    await runs.open(page, base, '?needs_repair=1');
    await bulk(page).getByRole('button', { name: /all that match/ }).click();
    const heading = page.getByRole('heading', { name: /^To be repaired/ });
    await heading.waitFor();
    const all = Number((await heading.innerText()).match(/\d+/)[0]);
    let held = 0;
    await page.route(/\/repairs\/[^/]+$/, (route) => {
      const polled = route.request().headers()['hx-request'] === 'true';
      return polled && (held += 1) === 1 ? undefined : route.continue();
    });
    await begin(page, 'slow line', all);
    await page.locator('.toast').getByText('No answer').waitFor({ timeout: 30_000 });
    await page.getByRole('status').getByText(/\d+ repaired/).waitFor();
    await page.getByRole('table', { name: 'Run by run' }).waitFor();
    assert.ok(held > 1, `${held} asked`);
  });
});
