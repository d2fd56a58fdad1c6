// Somebody annotates, blind, by keys alone; what is known is on no page; the words are read by others afterwards.

import { cpSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { aegis, arrived, check, findings, fresh, once, picture, shown, view } from './lab.mjs';

/** The traced run and its like of the other tests, in a directory of their own: words are written beside them. */
function recorded() {
  const dir = fresh('annotated');
  const logs = once('recorded/logs', () => {
    throw new Error('the screens are tested first: scripts/test-viewer every_screen');
  });
  for (const run of readdirSync(logs)) if (run !== 'annotations') cpSync(path.join(logs, run), path.join(dir, 'logs', run), { recursive: true });
  return dir;
}

export async function somebody_annotates_blind({ browser }) {
  const dir = recorded();
  const served = await view([path.join(dir, 'logs'), '--annotate', 'ada']);
  const { page, wrong, asked } = await browser.open();
  await page.goto(served.url);
  await shown(page, '.row');
  check((await page.locator('.places').count()) === 0, 'no campaign, no dataset');
  await page.goto(`${served.origin}/#/run/second`);
  await shown(page, '.step h2');
  const text = await page.locator('body').innerText();
  for (const known of ['FM-2.6', 'corrupt', 'labelled', 'injected', 'earliest', 'Trace', 'Attribution', 'suspected', 'Beside', 'Compare']) {
    check(!text.includes(known), `the page says ${known}`);
  }
  await page.keyboard.press('j');
  await arrived(page, '#/run/second/1');
  await shown(page, '.step h2');
  check(!(await page.locator('.step').innerText()).includes('84\n'), 'the words that the model said are hidden');
  await page.keyboard.press('a');
  await page.keyboard.type('<b>94</b> is no sum of these');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Space');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.annotate [role=status]').textContent.startsWith('Saved'));
  check((await page.locator('.annotate').innerText()).includes('solver'), 'who is blamed');
  const found = await findings(page);
  check(found.length === 0, `axe: ${found.join('\n')}`);
  await picture(page, 'annotate');
  await page.setViewportSize({ width: 375, height: 760 });
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(over <= 0, `${over} pixels too wide`);
  await picture(page, 'annotate-narrow');
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.reload();
  await shown(page, '.annotate');
  check((await page.locator('.annotate textarea').inputValue()) === '<b>94</b> is no sum of these', 'what was said is there again');
  check(!(await page.locator('.annotate input[type=checkbox]').isChecked()), 'unsure');
  await page.keyboard.press('u');
  await shown(page, '.row');
  check((await page.locator('.row', { hasText: 'second' }).first().innerText()).includes('annotated'), 'the list says so');
  check(wrong.length === 0, wrong.join('\n'));
  check(asked.every((url) => url.startsWith(served.origin) || url.startsWith('data:')), `asked ${asked}`);
  served.end();

  const said = JSON.parse(readFileSync(path.join(dir, 'logs/annotations/ada.jsonl'), 'utf8'));
  check(said.error.step === 1 && said.error.agent === 'solver' && said.blind && !said.sure, JSON.stringify(said));
  const open = await view([path.join(dir, 'logs')]);
  const other = await browser.open({ colorScheme: 'dark' });
  await other.page.goto(open.url);
  await shown(other.page, '.row');
  await other.page.goto(`${open.origin}/#/run/second`);
  await shown(other.page, '.annotations');
  check((await other.page.locator('.annotations').innerText()).includes('<b>94</b>'), 'words are words');
  const seen = await findings(other.page);
  check(seen.length === 0, `axe: ${seen.join('\n')}`);
  await picture(other.page, 'annotations-dark');
  check(other.wrong.length === 0, other.wrong.join('\n'));
  open.end();
  const compared = aegis(['annotations', path.join(dir, 'logs')]);
  check(compared.stdout.includes('second  ada: solver at 1'), compared.stdout);
  rmSync(dir, { recursive: true });
}

export async function somebody_says_which_mode_a_change_shows({ browser }) {
  const dir = recorded();
  const served = await view([path.join(dir, 'logs'), '--annotate', 'ada', '--modes']);
  const { page, wrong } = await browser.open();
  await page.goto(served.url);
  await shown(page, '.row');
  await page.goto(`${served.origin}/#/run/second`);
  await shown(page, '.annotate form');
  check((await page.locator('.head').innerText()).includes('FM-') === false, 'what the plan calls it is not told');
  check((await page.locator('.annotate input[type=radio]').count()) === 4, 'three modes, or none');
  check((await page.locator('.annotate .changed').innerText()).includes('94'), 'the change is shown');
  await page.locator('.annotate button').click();
  check((await page.locator('.annotate [role=status]').innerText()).includes('Choose one'), 'nothing is chosen for anybody');
  await page.getByLabel('acts against its own reasoning').check();
  await page.locator('.annotate textarea').fill('<b>84</b> becomes 94');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.annotate [role=status]').textContent === 'Saved');
  const found = await findings(page);
  check(found.length === 0, `axe: ${found.join('\n')}`);
  await picture(page, 'annotate-modes');
  await page.setViewportSize({ width: 375, height: 760 });
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(over <= 0, `${over} pixels too wide`);
  await page.reload();
  await shown(page, '.annotate form');
  check(await page.getByLabel('acts against its own reasoning').isChecked(), 'what was said is there again');
  check(wrong.length === 0, wrong.join('\n'));
  served.end();
  const told = aegis(['show', path.join(dir, 'logs/second')]);
  check(told.stdout.includes('confirmed by ada'), told.stdout);
  rmSync(dir, { recursive: true });
}
