// Repair on the page: offered where the rule says so, previewed, asked for with a reason, and
// refused visibly when the run has changed meanwhile.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { axe, screenshot, startDemo } from '../harness.js';
import { assertFits, run, situationsOf } from '../pages.js';

const demo = await startDemo();

let situations;

before(async () => {
  situations = await situationsOf(demo.base);
});

const address = (base, { instance, id }) => `${base}/instances/${encodeURIComponent(instance)}/runs/${id}`;
const offer = (page) => run.repair(page).getByRole('link', { name: 'Preview and repair' });
const form = (page) => page.getByRole('form', { name: 'Repair this run' });

async function ask(page, reason, name) {
  await form(page).getByLabel('Reason').fill(reason);
  await form(page).getByLabel('Name the run').fill(name);
  await form(page).getByRole('button', { name: 'Repair this run' }).click();
}

/** The engine's rule, over how the run stands now. */
const callsForRepair = ({ is_current_run: current, is_terminal: over, plimsoll: { recomputed } }) =>
  current &&
  !over &&
  (recomputed.liveness_state === 'repair_needed' ||
    (recomputed.liveness_state === 'workflow_replay_blocked' && recomputed.replay_blocked_task));

/** What the plan has against one that is called for. */
const refused = async (base, situation) => {
  const page = await (await fetch(`${address(base, situation)}/repair`)).text();
  return page.match(/No repair <code>([a-z_]+)</)?.[1];
};

test('the control stands exactly where a repair is called for and would be done', { timeout: 300_000 }, () =>
  demo.withPage({}, async (page, base) => {
    let offered = 0;
    for (const [name, situation] of situations) {
      const told = await fetch(address(`${base}/api`, situation));
      const why = await refused(base, situation);
      const allowed = callsForRepair(await told.json()) && !why;
      await page.goto(address(base, situation));
      assert.equal(await offer(page).count(), allowed ? 1 : 0, name);
      if (!allowed) assert.match(await run.repair(page).innerText(), new RegExp(`No repair ${why}\\b`), name);
      offered += allowed ? 1 : 0;
    }
    assert.ok(offered >= 15, `${offered} situations call for a repair`);
  }));

test('a repair is previewed, asked for and told', { timeout: 120_000 }, () =>
  demo.withPage({ expectStatus: [422] }, async (page, base) => {
    const lost = situations.get('activity-task-lost');
    await page.goto(address(base, lost));
    await offer(page).click();
    await page.waitForURL(/\/repair$/);
    await page.getByRole('heading', { name: 'It will', exact: true }).waitFor();
    await axe(page);
    await screenshot(page, 'repair-preview', { fullPage: true });

    await ask(page, '   ', lost.instance);
    await page.getByRole('alert').getByText('Say why').waitFor();
    await ask(page, 'the queue was flushed', 'another-run');
    await page.getByRole('alert').getByText('Name the run').waitFor();
    assert.equal(await form(page).getByLabel('Reason').inputValue(), 'the queue was flushed');

    await ask(page, 'the queue was flushed', lost.instance);
    await page.getByRole('status').getByText('Repaired').waitFor();
    await axe(page);
    await screenshot(page, 'repair-done', { fullPage: true });
    await page.getByRole('link', { name: 'the command that records it' }).click();
    await page.locator('#commands').getByText('the queue was flushed', { exact: true }).waitFor();
    assert.equal(await offer(page).count(), 0, 'not offered twice');

    await page.goto(`${address(base, lost)}/repair`);
    await page.getByRole('heading', { name: /No repair/ }).waitFor();
  }));

test('a run that changed meanwhile is left alone', { timeout: 120_000 }, () =>
  demo.withPage({ expectStatus: [409] }, async (page, base) => {
    const lost = situations.get('signal-task-lost');
    await page.goto(`${address(base, lost)}/repair`);
    const answer = await fetch(`${base}/api/instances/${encodeURIComponent(lost.instance)}/runs/${lost.id}/repair`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ reason: 'a colleague was faster' }),
    });
    assert.equal(answer.status, 200, await answer.text());
    await ask(page, 'mine', lost.instance);
    await page.getByRole('alert').getByText('The run has changed since it was previewed').waitFor();
    await page.getByRole('heading', { name: /No repair/ }).waitFor();
  }));

test('the preview fits 360 px in the dark', { timeout: 120_000 }, () =>
  demo.withPage({ theme: 'dark', width: 360, height: 740 }, async (page, base) => {
    await page.goto(`${address(base, situations.get('lease-expired-activity'))}/repair`);
    await assertFits(page);
    await axe(page);
    await screenshot(page, 'repair-narrow', { fullPage: true });
  }));
