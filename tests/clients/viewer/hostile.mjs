// Texts that mean harm, as a model says them: they are shown, and do nothing, in the page, in the file, in the terminal.

import path from 'node:path';
import { writeFileSync } from 'node:fs';
import { aegis, check, fresh, model, picture, shown, view } from './lab.mjs';
import { spawn } from 'node:child_process';
import { MARKUP, TEXTS } from './texts.mjs';

/** A run in which an agent says each of the texts, and is asked the one before. */
async function recorded() {
  const dir = fresh('hostile');
  const upstream = await model(TEXTS);
  const program = `
    const base = process.env.OPENAI_BASE_URL;
    let last = 'begin';
    for (let step = 0; step < ${TEXTS.length}; step += 1) {
      const messages = [{ role: 'system', content: 'You say.' }, { role: 'user', content: last }];
      const answer = await fetch(base + '/chat/completions', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: 'm', messages }) });
      last = (await answer.json()).choices[0].message.content;
    }`;
  const args = ['run', '--upstream', upstream.url, '--log-dir', path.join(dir, 'logs'), '--run', 'hostile', '--', 'node', '--input-type=module', '-e', program];
  // Not at once with the model that it asks: that lives in this process.
  await new Promise((ended, lost) => {
    const child = spawn(process.env.AEGIS_BIN, args, { cwd: dir, stdio: 'ignore' });
    child.on('exit', (code) => (code === 0 ? ended() : lost(new Error(`the run ended with ${code}`))));
  });
  upstream.end();
  // Judges say such things too, and methods quote them.
  const rows = TEXTS.map((text, step) => ({
    id: 'hostile', method: text, model: text, served_model: text, about: text, abstained: { why: text, said: text },
    predictions: step % 5 ? [{ agent: text, step, reason: text, fix: text, conflict: text, failure_mode: text, evidence: [{ step, quote: text, stands: false }] }] : [],
  }));
  writeFileSync(path.join(dir, 'logs/hostile/attribution.jsonl'), rows.map((row) => JSON.stringify(row)).join('\n'));
  return path.join(dir, 'logs');
}

/** Looks at every step, and at what came of it. */
async function walk(page, address, wrong, asked, own) {
  for (let step = 0; step < TEXTS.length; step += 1) {
    await page.goto(`${address}#/run/hostile/${step}?tab=messages`);
    await page.waitForFunction((step) => document.querySelector('.step h2')?.textContent.startsWith(`Step ${step} `), step);
    const harm = await page.evaluate(() => window.harmed ?? ({}).harmed ?? null);
    check(harm === null, `step ${step} did harm: ${TEXTS[step].slice(0, 80)}`);
    const strange = await page.evaluate(() => document.querySelectorAll('#app script, #app img, #app iframe, #app object, #app style, #app form:not(.filter), #app video, #app base').length);
    check(strange === 0, `step ${step} became markup: ${TEXTS[step].slice(0, 80)}`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(over <= 0, `step ${step} makes the page ${over} pixels too wide: ${TEXTS[step].slice(0, 40)}`);
    const bare = await page.evaluate(() => /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(document.querySelector('#app').textContent));
    check(!bare, `step ${step} steers: ${JSON.stringify(TEXTS[step].slice(0, 40))}`);
  }
  await page.goto(`${address}#/attribution/hostile`);
  await shown(page, '.side');
  const seen = await page.evaluate(() => ({
    cards: document.querySelectorAll('.method').length, harm: window.harmed ?? ({}).harmed ?? null,
    markup: document.querySelectorAll('#app script, #app img, #app iframe, #app object, #app style, #app form, #app video, #app base').length,
    bare: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(document.querySelector('#app').textContent),
    over: document.documentElement.scrollWidth - innerWidth,
  }));
  check(seen.cards === TEXTS.length && seen.harm === null && seen.markup === 0 && !seen.bare && seen.over <= 0, `what methods say: ${JSON.stringify(seen)}`);
  check(wrong.length === 0, wrong.join('\n'));
  check(asked.every((url) => url.startsWith(own) || url.startsWith('data:')), 'something was asked elsewhere');
}

export async function sixty_hostile_texts_are_inert({ browser }) {
  check(TEXTS.length >= 60, `${TEXTS.length} texts`);
  const logs = await recorded();
  const served = await view([logs]);
  const { page, wrong, asked } = await browser.open();
  await page.goto(served.url);
  await shown(page, '.row');
  await walk(page, `${served.origin}/`, wrong, asked, served.origin);
  await page.goto(`${served.origin}/#/run/hostile/${MARKUP.length + 1}?tab=messages`);
  await shown(page, '.steers');
  await picture(page, 'hostile');
  served.end();
  const file = path.join(logs, '..', 'hostile.html');
  aegis(['view', logs, '--bundle', file, '--overwrite']);
  const other = await browser.open();
  await walk(other.page, `file://${path.resolve(file)}`, other.wrong, other.asked, 'file:');
  for (const args of [['show', path.join(logs, 'hostile')], ['show', path.join(logs, 'hostile'), '--all'], ['runs', logs]]) {
    const { stdout } = aegis(args);
    check(!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(stdout), `${args[0]} steers the terminal`);
  }
  return `${TEXTS.length} texts in page, file and terminal`;
}
