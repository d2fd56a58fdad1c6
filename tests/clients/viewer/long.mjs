// Long runs, large campaigns, and a run that is written while it is looked at.

import { spawn } from 'node:child_process';
import { cpSync, existsSync, readFileSync, writeFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { aegis, arrived, check, fresh, model, picture, recorded as made, shown, view } from './lab.mjs';

const STEPS = 10000;
/** Milliseconds to the first row on the page. */
const PAINT = 1000;
/** Rows that may be in the page. */
const ROWS = 120;

/** A run of many steps by several agents. */
async function recorded() {
  const dir = fresh('long');
  const program = `
    const agents = ['planner', 'solver', 'critic', 'writer', 'judge'];
    const base = process.env.OPENAI_BASE_URL.replace('/v1', '');
    const call = async (step) => {
      const messages = [{ role: 'system', content: 'You work.' }, { role: 'user', content: 'part ' + step + ' of the work, which goes on' }];
      const answer = await fetch(base + '/a/' + agents[step % 5] + '/v1/chat/completions', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: 'm', messages }) });
      await answer.arrayBuffer();
    };
    let next = 0;
    await Promise.all(Array.from({ length: 8 }, async () => { while (next < ${STEPS}) await call(next++); }));`;
  const upstream = await model(['I worked on this part, and it went well enough for the next to begin.', 'This part took longer than was foreseen.']);
  await new Promise((ended, lost) => {
    const args = ['run', '--upstream', upstream.url, '--log-dir', path.join(dir, 'logs'), '--run', 'long', '--', 'node', '--input-type=module', '-e', program];
    const child = spawn(process.env.AEGIS_BIN, args, { cwd: dir, stdio: 'ignore' });
    child.on('exit', (code) => (code === 0 ? ended() : lost(new Error(`the run ended with ${code}`))));
  });
  upstream.end();
  return path.join(dir, 'logs');
}

/** Milliseconds from the navigation to what a selector shows, as the page itself saw it. */
async function painted(page, url, selector) {
  await page.addInitScript((selector) => {
    const watch = new MutationObserver(() => {
      if (!document.querySelector(selector)) return;
      watch.disconnect();
      window.first = document.querySelector('main').innerText;
      requestAnimationFrame(() => requestAnimationFrame(() => (window.painted = performance.now())));
    });
    watch.observe(document, { childList: true, subtree: true });
  }, selector);
  await page.goto(url);
  await page.waitForFunction(() => window.painted, null, { timeout: 60000 });
  return page.evaluate(() => window.painted);
}

/** A list of which the page gets only the beginning: what is filtered and ordered is all of it. */
export async function a_list_that_the_server_holds({ browser }) {
  const dir = fresh('many');
  const runs = path.join(made(), 'logs', 'first');
  const manifest = readFileSync(path.join(runs, 'run.json'), 'utf8');
  for (let number = 0; number < 1500; number += 1) {
    const run = path.join(dir, `m-${number}`);
    mkdirSync(run, { recursive: true });
    for (const file of ['log.jsonl', 'log.jsonl.zst', 'seal.json']) if (existsSync(path.join(runs, file))) cpSync(path.join(runs, file), path.join(run, file));
    writeFileSync(path.join(run, 'run.json'), manifest.replace('"first"', `"m-${number}"`).replace(/"started": "[^"]*"/, `"started": "2026-01-01T${String(Math.floor(number / 60)).padStart(2, '0')}:${String(number % 60).padStart(2, '0')}:00Z"`));
  }
  const served = await view([dir]);
  const { page, context } = await browser.open();
  await page.goto(served.url);
  await shown(page, '.row');
  check((await page.locator('.title').innerText()).includes('1,500 of 1,500'), await page.locator('.title').innerText());
  check((await page.locator('main').innerText()).includes('The first 1,000 are shown'), 'it says that not all are shown');
  check((await page.locator('.row .id').first().innerText()) === 'm-1499', 'the newest first');
  await page.fill('[aria-label=Filter]', 'M-77 ');
  await page.waitForFunction(() => document.querySelector('.title').innerText.includes('11 of'));
  check((await page.locator('.row .id').allInnerTexts()).includes('m-77'), 'an old one is found');
  await page.fill('[aria-label=Filter]', 'no such words');
  await page.waitForFunction(() => document.querySelector('.note')?.innerText.includes('No run has all of this'));
  await context.close();
  served.end();
}

export async function ten_thousand_steps({ browser }) {
  const dir = await recorded();
  // By a server that has read nothing yet: the head comes at once, the steps when they are read.
  const cold = [];
  const read = [];
  for (let tried = 0; tried < 3; tried += 1) {
    const fresh = await view([dir]);
    const first = await browser.open();
    await first.page.goto(fresh.url);
    await shown(first.page, '.row');
    const other = await first.context.newPage();
    cold.push(await painted(other, `${fresh.origin}/#/run/long/5000`, '.run h1'));
    const told = await other.evaluate(() => window.first);
    check(told.includes('Reading 10,000 steps') && told.includes('planner'), `the head says whose steps are read: ${told}`);
    await other.waitForSelector('.row.chosen');
    read.push(await other.evaluate(() => performance.now()));
    await first.context.close();
    fresh.end();
  }
  const served = await view([dir]);
  const { page, wrong, context } = await browser.open();
  await page.goto(served.url);
  await shown(page, '.row');
  const times = [];
  for (let tried = 0; tried < 3; tried += 1) {
    const other = await context.newPage();
    times.push(await painted(other, `${served.origin}/#/run/long/5000`, '.row.chosen'));
    await other.close();
  }
  const paint = Math.min(...times);
  await page.goto(`${served.origin}/#/run/long/5000`);
  await shown(page, '.step h2');
  const rows = await page.locator('.row').count();
  check(rows > 5 && rows < ROWS, `${rows} rows are in the page`);
  check((await page.locator('.row.chosen').getAttribute('aria-posinset')) === '5001', 'the link leads to the step');
  const jumps = await page.evaluate(async () => {
    const list = document.querySelector('.list');
    const start = performance.now();
    let most = 0;
    for (let jump = 0; jump < 40; jump += 1) {
      list.scrollTop = (list.scrollHeight * jump) / 40;
      await new Promise((next) => requestAnimationFrame(next));
      most = Math.max(most, document.querySelectorAll('.row').length);
    }
    return { took: performance.now() - start, most };
  });
  check(jumps.most < ROWS, `${jumps.most} rows while scrolling`);
  await page.keyboard.press('G');
  await arrived(page, `/long/${STEPS - 1}`);
  await picture(page, 'long');
  check(paint < PAINT, `first paint after ${paint.toFixed(0)} ms, of at most ${PAINT}`);
  const coldest = Math.min(...cold);
  check(coldest < PAINT, `first paint of a cold server after ${coldest.toFixed(0)} ms, of at most ${PAINT}`);
  check(wrong.length === 0, wrong.join('\n'));
  served.end();
  return `first paint ${paint.toFixed(0)} ms, ${rows} rows, 40 jumps ${jumps.took.toFixed(0)} ms, by a server that has read nothing ${coldest.toFixed(0)} ms, with the steps ${Math.min(...read).toFixed(0)} ms`;
}

export async function a_campaign_of_a_thousand_runs({ browser }) {
  const small = path.join(made(), 'demo');
  const dir = fresh('thousand');
  const report = JSON.parse(readFileSync(path.join(small, 'report.json')));
  const cells = [];
  mkdirSync(path.join(dir, 'demo/logs'), { recursive: true });
  for (let number = 0; number < 1000; number += 1) {
    const cell = report.cells[number % report.cells.length];
    const run = `m-${String(number).padStart(4, '0')}`;
    cpSync(path.join(small, 'logs', cell.run), path.join(dir, 'demo/logs', run), { recursive: true });
    const manifest = path.join(dir, 'demo/logs', run, 'run.json');
    writeFileSync(manifest, readFileSync(manifest, 'utf8').replace(cell.run, run));
    cells.push({ ...cell, run, task: `${cell.task}-${Math.floor(number / 36)}` });
  }
  writeFileSync(path.join(dir, 'demo/report.json'), JSON.stringify({ ...report, cells }));
  const served = await view([dir]);
  const first = await browser.open();
  await first.page.goto(served.url);
  await shown(first.page, '.row');
  const times = {};
  for (const [name, address, selector] of [['runs', '#/', '.row'], ['campaign', '#/campaign/demo', '.matrix']]) {
    const page = await first.context.newPage();
    times[name] = await painted(page, `${served.origin}/${address}`, selector);
    check(times[name] < PAINT, `${name} after ${times[name].toFixed(0)} ms, of at most ${PAINT}`);
    check((await page.locator('.row').count()) < ROWS, 'rows in the page');
    await page.close();
  }
  check(first.wrong.length === 0, first.wrong.join('\n'));
  served.end();
  return `runs ${times.runs.toFixed(0)} ms, campaign ${times.campaign.toFixed(0)} ms`;
}

export async function a_run_is_seen_while_it_is_written({ browser }) {
  const dir = fresh('written');
  const upstream = await model(['a part'], 60);
  const program = `
    const base = process.env.OPENAI_BASE_URL;
    for (let step = 0; step < 40; step += 1) {
      await fetch(base + '/chat/completions', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'go on ' + step }] }) });
    }`;
  const logs = path.join(dir, 'logs');
  const child = spawn(process.env.AEGIS_BIN, ['run', '--upstream', upstream.url, '--log-dir', logs, '--run', 'live', '--', 'node', '--input-type=module', '-e', program], { cwd: dir, stdio: 'ignore' });
  const ended = new Promise((done) => child.on('exit', done));
  mkdirSync(logs, { recursive: true });
  const served = await view([logs]);
  const { page, wrong } = await browser.open();
  await page.goto(served.url);
  await page.waitForFunction(() => fetch('/api/run/live').then((answer) => answer.ok), null, { polling: 200, timeout: 20000 });
  await page.goto(`${served.origin}/#/run/live`);
  await page.waitForFunction(() => document.querySelectorAll('.row').length > 2, null, { timeout: 20000 });
  check((await page.locator('.title').innerText()).includes('being written'), 'it is being written');
  await page.waitForFunction(() => document.querySelector('.row')?.getAttribute('aria-setsize') === '40', null, { timeout: 30000 });
  await ended;
  await page.waitForFunction(() => !document.querySelector('.title').textContent.includes('being written'), null, { timeout: 20000 });
  check(wrong.length === 0, wrong.join('\n'));
  upstream.end();
  served.end();
  aegis(['show', path.join(logs, 'live')]);
}
