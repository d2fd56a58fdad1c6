// Every screen on real recordings: no finding of axe, no error, nothing asked elsewhere; by keys alone; as a file.

import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { aegis, arrived, check, findings, fresh, picture, recorded, root, shown, stranger, view, work } from './lab.mjs';

/** A verified run of the campaign and the dataset's first sample. */
async function addresses(origin, page) {
  const tree = await page.evaluate(() => fetch('/api/tree').then((answer) => answer.json()));
  const proven = tree.runs.find((row) => row.label?.status === 'verified');
  check(proven, 'a run of the campaign is verified');
  return {
    runs: '#/',
    run: `#/run/${proven.key}`,
    messages: `#/run/${proven.key}/2?tab=messages`,
    bytes: `#/run/${proven.key}/1?tab=raw`,
    times: `#/run/${proven.key}/1?tab=times&by=time`,
    twin: '#/diff/first/second',
    choose: '#/compare/second',
    trace: '#/trace/second',
    attribution: '#/attribution/second',
    suspected: '#/attribution/demo/1',
    campaign: '#/campaign/demo',
    plans: '#/campaign/demo?by=plan',
    dataset: '#/dataset/demo',
    findings: '#/dataset/demo?view=findings',
    counts: '#/dataset/demo?view=counts',
    sample: '#/sample/demo/1',
  };
}

export async function every_screen_in_light_dark_and_narrow({ browser }) {
  const served = await view([recorded(), path.join(recorded(), 'predictions.jsonl')]);
  let screens = 0;
  for (const [name, options] of [['light', { colorScheme: 'light' }], ['dark', { colorScheme: 'dark' }], ['narrow', { viewport: { width: 375, height: 760 } }]]) {
    const { page, wrong, asked, context } = await browser.open(options);
    await page.goto(served.url);
    await shown(page, 'main h1');
    check(!page.url().includes('t='), 'the token has left the address');
    for (const [screen, address] of Object.entries(await addresses(served.origin, page))) {
      await page.goto(`${served.origin}/${address}`);
      await shown(page, 'main h1');
      check((await page.locator('.failed').count()) === 0, `${screen}: ${await page.locator('.failed').allTextContents()}`);
      const found = await findings(page);
      check(found.length === 0, `${screen}, ${name}: axe: ${found.join('\n')}`);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(over <= 0, `${screen}, ${name}: ${over} pixels too wide`);
      await picture(page, `${screen}-${name}`);
      screens += 1;
    }
    check(wrong.length === 0, `${name}: ${wrong.join('\n')}`);
    const elsewhere = asked.filter((url) => !url.startsWith(served.origin) && !url.startsWith('data:'));
    check(elsewhere.length === 0, `${name}: asked ${elsewhere}`);
    await context.close();
  }
  served.end();
  return `${screens} screens, 0 findings, 0 errors, 0 requests elsewhere`;
}

const ANSWERS = {
  'what was asked': '.task', 'what was injected': 'p.planted', 'what changed': '.step ins, .step del', 'who is to blame': '.facts dd:has(.tag)',
  'how sure': '.facts div:has(dt:text-is("how sure")) dd', 'what came out': '.facts div:has(dt:text-is("last reply")) dd',
};

/** Whether a page answers all of them on the screen that is seen. */
async function answered(page, questions = Object.keys(ANSWERS)) {
  for (const question of questions) {
    const selector = ANSWERS[question];
    await shown(page, selector);
    const place = page.locator(selector).first();
    const box = await place.boundingBox();
    check(box && box.y + box.height <= 800 && (await place.innerText()).trim(), `${question}: ${JSON.stringify(box)}`);
  }
}

/** What was injected, what changed, who is to blame, how sure: read without a click and without scrolling. */
export async function four_questions_are_answered_on_one_screen({ browser }) {
  const served = await view([recorded()]);
  const { page, context } = await browser.open({ viewport: { width: 1280, height: 800 } });
  await page.goto(served.url);
  await shown(page, 'main h1');
  const row = page.locator('.row', { hasText: 'corrupt_number in the reply of solver' }).first();
  check((await row.locator('.kind').innerText()).startsWith('treated'), 'the list says what kind of run it is');
  await page.selectOption('[aria-label=Kind]', 'control');
  await page.waitForFunction(() => [...document.querySelectorAll('.row .tag')].every((tag) => tag.innerText === 'control'));
  const { run } = await addresses(served.origin, page);
  await page.goto(`${served.origin}/${run}`);
  await arrived(page, run);
  await shown(page, 'p.planted');
  await picture(page, 'four');
  await answered(page);
  const sure = await page.locator(ANSWERS['how sure']).innerText();
  check(/2 and 2 equal \(without it 2\/2 passed, with it 0\/2 passed\)/.test(sure), sure);
  await page.goto(`${served.origin}/#/campaign/demo`);
  await shown(page, '.matrix');
  const matrix = await page.locator('.matrix').first().boundingBox();
  check(matrix.y < 800, `a campaign opens on its matrix: ${matrix.y}`);
  // A row of a data set says it, too.
  const data = await fetch(`${served.origin}/api/dataset/demo`, { headers: { 'x-aegis-token': served.token } }).then((reply) => reply.json());
  await page.goto(`${served.origin}/#/sample/demo/${data.samples.findIndex((sample) => sample.status === 'verified')}`);
  await answered(page);
  await picture(page, 'four-sample');
  await page.goto(`${served.origin}/#/no-such-screen/first`);
  await shown(page, '.failed');
  check((await page.locator('.failed').innerText()).includes('nothing at this address'), 'an address that names nothing says so');
  await context.close();
  served.end();
}

/** The same of a run that nobody has executed again: that it was not tested is an answer. */
export async function a_run_outside_a_campaign_answers_the_four_questions({ browser }) {
  const logs = path.join(work, 'alone');
  aegis(['run', '--upstream', 'simulator', '--config', path.join(root, 'examples/pipeline/aegis.toml'), '--plan', path.join(root, 'plans/corrupt-number.toml'),
    '--run', 'alone', '--log-dir', logs, '--overwrite', '--', process.env.AEGIS_BIN, 'example', 'pipeline', '--task',
    'Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?']);
  const served = await view([logs]);
  const { page, context } = await browser.open({ viewport: { width: 1280, height: 800 } });
  await page.goto(served.url);
  await page.goto(`${served.origin}/#/run/alone`);
  // Nobody has said what its task is.
  await answered(page, Object.keys(ANSWERS).filter((question) => question !== 'what was asked'));
  check((await page.locator(ANSWERS['how sure']).innerText()).startsWith('not tested'), 'what was not executed is not sure');
  await picture(page, 'four-alone');
  await context.close();
  served.end();
}

/** A link followed between the first drawing and the moment in which the page begins to listen. */
export async function an_address_that_changes_while_the_page_opens_is_shown({ browser }) {
  const served = await view([recorded()]);
  const { page, context } = await browser.open();
  await page.addInitScript(() => {
    const app = () => document.getElementById('app');
    new MutationObserver((_, observer) => {
      if (!app()?.querySelector('footer')) return;
      observer.disconnect();
      history.replaceState(null, '', '#/run/second');
      dispatchEvent(new HashChangeEvent('hashchange'));
    }).observe(document, { childList: true, subtree: true });
  });
  await page.goto(served.url);
  await shown(page, 'p.planted');
  await context.close();
  served.end();
}

export async function before_and_after_and_where_it_went({ browser }) {
  const served = await view([recorded()]);
  const { page } = await browser.open();
  await page.goto(served.url);
  await shown(page, 'main h1');
  await page.goto(`${served.origin}/#/run/second`);
  await shown(page, '.changed');
  check((await page.locator('.changed del').innerText()) === '84' && (await page.locator('.changed ins').innerText()) === '94', 'the edit');
  check((await page.locator('.spread').innerText()).includes('step 2'), 'it went to the critic');
  check((await page.locator('.row.chosen').innerText()).includes('solver'), 'the injected step is chosen');
  await page.click('.spread a');
  await arrived(page, '#/run/second/2');
  await page.goto(`${served.origin}/#/diff/first/second`);
  await shown(page, '.step');
  check((await page.locator('.list').innerText()).includes('1 equal'), 'what is equal is folded');
  await page.goto(`${served.origin}/#/trace/second`);
  await shown(page, '.findings');
  check((await page.locator('.finding.bad').count()) === 2 && (await page.locator('.finding').nth(1).innerText()).includes('5 of 5 passed'), 'who is blamed, and on what');
  served.end();
}

export async function methods_side_by_side_and_on_what_evidence({ browser }) {
  const served = await view([recorded(), path.join(recorded(), 'predictions.jsonl')]);
  const { page, wrong } = await browser.open();
  await page.goto(served.url);
  await shown(page, '.row');
  await page.goto(`${served.origin}/#/run/second`);
  await shown(page, '.legend');
  check((await page.locator('.legend').innerText()).includes('suspected'), 'the step is marked');
  await page.click('.tabs >> text=Attribution');
  await shown(page, '.side');
  const lead = await page.locator('.attribution .lead').innerText();
  check(lead.includes('of 5 methods name solver at step 1') && lead.includes('The trace, which rests on executions, names the same step'), lead);
  const table = await page.locator('.side').innerText();
  for (const word of ['alignment', 'spectrum', 'rules', 'a2p', 'judge-critics', 'trace, executed', 'no prediction: unreadable']) check(table.includes(word), `${word} is not in ${table}`);
  check((await page.locator('.side tr', { hasText: 'alignment' }).locator('.first').innerText()).trim() === '1.00', 'the first choice and its number');
  const card = page.locator('.method', { hasText: 'alignment' }).first();
  check((await card.innerText()).includes('where a passed run said') && (await card.locator('blockquote').first().innerText()).includes('94'), 'why, and the words');
  check((await page.locator('.method', { hasText: 'judge-critics' }).innerText()).includes('simulator (a scripted model'), 'the simulator is named as one');
  await card.locator('a', { hasText: 'step 1' }).first().click();
  await arrived(page, '#/run/second/1');
  // Of a dataset, what a file of rows says that was named beside it.
  await page.goto(`${served.origin}/#/dataset/demo`);
  await shown(page, '.row');
  check((await page.locator('.list').innerText()).includes('suspected: solver at step 1 (alignment, rules)'), 'the list of samples says so');
  await page.goto(`${served.origin}/#/attribution/demo/1`);
  await shown(page, '.side');
  check((await page.locator('.attribution .lead').innerText()).includes('The label, which rests on executions, names the same step'), 'beside the label');
  check(wrong.length === 0, wrong.join('\n'));
  served.end();
  const shownHere = aegis(['show', path.join(recorded(), 'logs/second')]).stdout;
  check(/^suspect {2}solver at step 1 \(alignment, spectrum, rules/m.test(shownHere), shownHere);
}

export async function what_a_rule_saw_stands_at_its_step({ browser }) {
  const logs = fresh('watched');
  const task = 'Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?';
  aegis(['run', '--upstream', 'simulator', '--config', path.join(root, 'examples/pipeline/aegis.toml'), '--log-dir', logs, '--run', 'two', '--plan', 'corrupt-number',
    '--watch', 'stop:other-result', '--', process.env.AEGIS_BIN, 'example', 'pipeline', '--task', task], { allow: [0, 1] });
  const served = await view([logs]);
  const { page, wrong } = await browser.open();
  await page.goto(served.url);
  await shown(page, '.row');
  await page.goto(`${served.origin}/#/run/two/1`);
  await shown(page, '.sign');
  check((await page.locator('.legend').innerText()).includes('watched'), 'the step is marked');
  const sign = await page.locator('.sign').innerText();
  check(sign.includes('other-result') && sign.includes('94') && sign.includes('(the run was stopped for it)'), sign);
  const found = await findings(page);
  check(found.length === 0, `axe: ${found.join('\n')}`);
  await page.goto(`${served.origin}/#/run/two/0`);
  await page.waitForFunction(() => document.querySelector('.step h2')?.innerText.includes('Step 0'));
  check((await page.locator('.sign').count()) === 0, 'another step has no sign');
  check(wrong.length === 0, wrong.join('\n'));
  served.end();
}

export async function a_walk_by_keys_alone({ browser }) {
  const served = await view([recorded()]);
  const { page, wrong } = await browser.open();
  await page.goto(served.url);
  await shown(page, '.row');
  const at = (part) => arrived(page, part);
  await page.keyboard.press('/');
  await page.keyboard.type('second');
  await at('q=second');
  for (let tabs = 0; tabs < 12; tabs += 1) {
    await page.keyboard.press('Tab');
    if (await page.evaluate(() => document.activeElement.getAttribute('role') === 'listbox')) break;
  }
  await page.keyboard.press('Enter');
  await at('/run/second');
  await shown(page, '.step .tabs');
  await page.keyboard.press('g');
  await at('/second/0');
  await page.keyboard.press('n');
  await at('/second/1');
  await page.keyboard.press('j');
  await at('/second/2');
  await page.keyboard.press('t');
  await at('by=time');
  await page.keyboard.press('+');
  await page.waitForSelector('.lanes .whole');
  await page.keyboard.press('?');
  await page.waitForSelector('dialog[open]');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', { state: 'detached' });
  const follow = async (words) => {
    await page.evaluate(() => document.activeElement.blur());
    for (let tabs = 0; tabs < 40; tabs += 1) {
      await page.keyboard.press('Tab');
      if (await page.evaluate((words) => document.activeElement.matches('a, button') && document.activeElement.textContent.includes(words), words)) break;
    }
    await page.keyboard.press('Enter');
  };
  await follow('Trace');
  await at('/trace/second');
  await follow('Attribution');
  await at('/attribution/second');
  await shown(page, '.side');
  await page.keyboard.press('u');
  await shown(page, '.places');
  await follow('campaign');
  await at('/campaign/demo');
  await shown(page, '.matrix');
  await follow('Plan × task');
  await at('by=plan');
  await page.keyboard.press('u');
  await shown(page, '.places');
  await follow('dataset');
  await at('/dataset/demo');
  check(wrong.length === 0, wrong.join('\n'));
  served.end();
}

export async function a_page_of_somebody_else_reads_nothing({ browser }) {
  const served = await view([recorded()]);
  const own = await browser.open();
  await own.page.goto(served.url);
  await shown(own.page, '.row');
  const file = path.join(work, 'stranger.html');
  writeFileSync(file, '<!doctype html><title>x</title><body>x');
  const other = await stranger(file);
  const page = await own.context.newPage();
  await page.goto(other.url);
  const read = await page.evaluate(async (origin) => {
    const tried = [];
    for (const options of [{}, { credentials: 'include' }, { mode: 'no-cors', credentials: 'include' }, { method: 'POST', credentials: 'include', body: 'x' }]) {
      tried.push(await fetch(`${origin}/api/tree`, options).then(async (answer) => `${answer.type} ${(await answer.text()).length}`, () => 'refused'));
    }
    const script = document.createElement('script');
    script.src = `${origin}/page/app.js`;
    tried.push(await new Promise((told) => { script.onload = () => told('loaded'); script.onerror = () => told('refused'); document.head.append(script); }));
    const frame = document.createElement('iframe');
    frame.src = `${origin}/`;
    document.body.append(frame);
    await new Promise((told) => { frame.onload = told; setTimeout(told, 1500); });
    tried.push(frame.contentDocument === null ? 'refused' : 'framed');
    return tried;
  }, served.origin);
  check(read.every((one) => one === 'refused' || one === 'opaque 0'), read.join(', '));
  const wrong = await browser.open();
  await wrong.page.goto(`${served.origin}/#t=${'0'.repeat(32)}`);
  await wrong.page.waitForSelector('.failed');
  await wrong.page.goto(`${served.origin}/#/run/second`);
  await wrong.page.reload();
  await wrong.page.waitForSelector('.failed');
  other.end();
  served.end();
  return read.join(', ');
}

export async function a_file_opens_from_disk_and_links_lead_to_steps({ browser }) {
  const file = path.join(fresh('bundled'), 'run.html');
  aegis(['view', path.join(recorded(), 'logs'), '--bundle', file, '--overwrite']);
  check(existsSync(file), 'it is there');
  const { page, wrong, asked } = await browser.open();
  await page.goto(`file://${file}#/run/second/2?tab=raw`);
  await shown(page, '.step pre');
  check((await page.locator('h2').first().innerText()).includes('critic'), 'the step that the link names');
  await page.goto(`file://${file}#/diff/first/second`);
  await shown(page, '.step ins');
  await page.goto(`file://${file}#/trace/second`);
  await shown(page, '.finding.bad');
  await picture(page, 'file');
  await page.goto(`file://${file}#/attribution/second`);
  await shown(page, '.side');
  check(wrong.length === 0, wrong.join('\n'));
  check(asked.every((url) => url.startsWith('file:') || url.startsWith('data:')), `asked ${asked}`);
  const whole = path.join(work, 'bundled', 'campaign.html');
  const { stderr } = aegis(['view', path.join(recorded(), 'demo'), '--bundle', whole, '--overwrite']);
  await page.goto(`file://${whole}#/campaign/demo`);
  await shown(page, '.matrix');
  await page.click('.campaign .row');
  await page.waitForSelector('.run .step');
  check(wrong.length === 0, wrong.join('\n'));
  return stderr.trim().split('\n').at(-1).replace(/.*bundled/, '');
}

export async function words_are_searched_in_a_run({ browser }) {
  const served = await view([recorded()]);
  const { page, wrong } = await browser.open();
  await page.goto(served.url);
  await shown(page, '.row');
  await page.goto(`${served.origin}/#/run/second/1`);
  await shown(page, '.step h2');
  await page.keyboard.press('/');
  await page.keyboard.type('I WENT through');
  await page.waitForFunction(() => document.querySelectorAll('.list .row').length === 1);
  const row = await page.locator('.list .row').innerText();
  check(row.includes('critic') && row.includes('I went through'), row);
  check(page.url().includes('q=I%20WENT'), 'the words stand in the address');
  await page.keyboard.press('Tab');
  const found = await findings(page);
  check(found.length === 0, `axe: ${found.join('\n')}`);
  await picture(page, 'searched');
  await page.fill('input[type=search]', 'no such words');
  await page.waitForFunction(() => document.querySelectorAll('.list .row').length === 0);
  await page.fill('input[type=search]', '');
  await page.waitForFunction(() => document.querySelectorAll('.list .row').length === 3);
  check(wrong.length === 0, wrong.join('\n'));
  const trial = (await page.evaluate(() => fetch('/api/tree').then((answer) => answer.json()))).runs.find((one) => one.trial_of === 'second');
  await page.goto(`${served.origin}/#/run/${trial.key}`);
  await shown(page, '.legend');
  check((await page.locator('.legend').innerText()).includes('record'), 'what a record answered is told from what the model did');
  await picture(page, 'from-record');
  served.end();
}

export async function words_are_searched_in_all_runs({ browser }) {
  const served = await view([recorded()]);
  const { page, wrong } = await browser.open();
  await page.goto(served.url);
  await shown(page, '.row');
  const all = page.locator('input[aria-label="Search the texts of all runs"]');
  await all.fill('I WENT through');
  await page.waitForFunction(() => document.querySelector('.note[role=status]')?.innerText.includes('searched'));
  const row = await page.locator('.list .row').first().innerText();
  check(/step \d+: .*I went through/.test(row), row);
  const found = await findings(page);
  check(found.length === 0, `axe: ${found.join('\n')}`);
  await picture(page, 'searched-all');
  await page.locator('.list .row').first().click();
  await shown(page, '.step h2');
  check(/#\/run\/[^/]+\/\d+\?q=I%20WENT/.test(page.url()), `it leads to the step: ${page.url()}`);
  check(wrong.length === 0, wrong.join('\n'));
  served.end();
}

export async function it_prints({ browser }) {
  const served = await view([recorded()]);
  const { page } = await browser.open();
  await page.goto(served.url);
  await shown(page, '.row');
  await page.goto(`${served.origin}/#/campaign/demo`);
  await shown(page, '.matrix');
  await page.emulateMedia({ media: 'print' });
  await page.waitForFunction(() => document.querySelectorAll('.row').length === 36, null, { timeout: 5000 });
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(over <= 0, `${over} pixels too wide on paper`);
  await picture(page, 'printed', { fullPage: true });
  await page.emulateMedia({ media: 'screen' });
  await page.goto(`${served.origin}/#/run/second/1?tab=messages`);
  await shown(page, '.said');
  await page.emulateMedia({ media: 'print' });
  const place = await page.locator('.said').first().evaluate((said) => [getComputedStyle(said).display, said.getBoundingClientRect().left]);
  check(place[0] === 'block' && place[1] < 40, `messages stand apart on paper: ${place}`);
  await picture(page, 'printed-run', { fullPage: true });
  await page.emulateMedia({ media: 'screen' });
  await page.goto(`${served.origin}/#/attribution/second`);
  await shown(page, '.side');
  await page.emulateMedia({ media: 'print' });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(wide <= 0, `${wide} pixels too wide on paper`);
  await picture(page, 'printed-attribution', { fullPage: true });
  served.end();
}
