// What verbs write as pages: `report.html` of a campaign and `stats --html`, opened from disk.

import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { aegis, arrived, check, findings, fresh, picture, recorded, shown } from './lab.mjs';
import { TEXTS } from './texts.mjs';

const LOOKS = [['light', { colorScheme: 'light' }], ['dark', { colorScheme: 'dark' }], ['narrow', { viewport: { width: 375, height: 760 } }]];

/** The page that the demo's campaign left, and what it reports. */
function left() {
  const dir = path.join(recorded(), 'demo');
  return { file: path.join(dir, 'report.html'), report: JSON.parse(readFileSync(path.join(dir, 'report.json'))), dir };
}

/** Nothing went wrong, and nothing was asked elsewhere. */
function sound({ wrong, asked }, what) {
  check(wrong.length === 0, `${what}: ${wrong.join('\n')}`);
  check(asked.every((url) => url.startsWith('file:') || url.startsWith('data:')), `${what}: asked ${asked}`);
}

export async function pages_that_verbs_write_are_read_in_the_dark_and_narrow({ browser }) {
  const dir = fresh('written');
  const stats = path.join(dir, 'stats.html');
  aegis(['stats', path.join(recorded(), 'demo'), '--html', stats]);
  const { file, report } = left();
  const run = report.cells.find((cell) => cell.class === 'verified').run;
  const pages = [['stats', stats, '.charts'], ['report', file, '.matrix'], ['report-plans', `${file}#/campaign/demo?by=plan`, '.matrix'], ['report-run', `${file}#/run/${run}`, '.step h2']];
  for (const [look, options] of LOOKS) {
    for (const [name, address, selector] of pages) {
      const opened = await browser.open(options);
      const { page } = opened;
      await page.goto(`file://${address}`);
      await shown(page, selector);
      const found = await findings(page);
      check(found.length === 0, `${name}, ${look}: axe: ${found.join('\n')}`);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(over <= 0, `${name}, ${look}: ${over} pixels too wide`);
      await picture(page, `${name}-${look}`, { fullPage: true });
      sound(opened, `${name}, ${look}`);
      await opened.context.close();
    }
  }
  const { page } = await browser.open();
  await page.goto(`file://${stats}`);
  await shown(page, '.charts');
  check((await page.locator('.charts').innerText()).includes('Erring agents'), 'counts');
  await page.goto(`file://${stats}#/sample/demo/1`);
  await shown(page, '.step h2');
}

export async function a_report_on_paper_tells_all_that_is_reported({ browser }) {
  const { file, report } = left();
  const opened = await browser.open();
  const { page } = opened;
  await page.goto(`file://${file}`);
  await shown(page, '.matrix');
  await page.emulateMedia({ media: 'print' });
  await page.waitForFunction((rows) => document.querySelectorAll('.row').length === rows, report.cells.length);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(over <= 0, `${over} pixels too wide on paper`);
  const text = (await page.locator('main').innerText()).replace(/\s+/g, ' ');
  const tells = (...facts) => facts.forEach((fact) => check(text.includes(String(fact)), `the page does not tell \`${fact}\``));
  tells(report.campaign, 'simulator (a scripted model, not a language model)', report.taxonomy, report.seed, `${report.clean.passed} of ${report.clean.runs} passed`, `${report.clean.kept} of ${report.clean.tasks} tasks`);
  for (const [kind, count] of Object.entries(report.classes)) tells(`${kind} ${count}`);
  for (const one of report.strata) {
    const { value, low, high } = one.yield;
    tells(`${one.system}: ${one.agent} ${one.mode} · ${one.side} · ${one.manipulator.replaceAll('_', ' ')}`, `${Math.round(100 * value)} % (${Math.round(100 * low)} to ${Math.round(100 * high)})`);
    tells([one.planted, one.delivered, one.flipped, one.necessary].join(' '));
  }
  for (const one of report.modes) tells(`${one.mode} ${one.name} ${one.necessary} of ${one.planted}`);
  const money = (expense) => [expense.calls, expense.input_tokens, expense.output_tokens].map((number) => (Math.round(10 * number) / 10).toLocaleString('en')).join(' ') + ` ${expense.money === null ? 'unknown' : expense.money.toFixed(6)}`;
  for (const expense of [report.cost.spent, report.cost.by_cells, report.cost.per_verified, report.cost.saved_by_prefix]) tells(money(expense));
  for (const cell of report.cells) tells(`${cell.run} ${cell.plan} · ${cell.system} · ${cell.task} ${cell.class} ${cell.why ?? cell.evidence}${cell.proof ? ` · ${cell.proof}` : ''}`);
  const paper = await page.pdf({ path: path.join(fresh('paper'), 'report.pdf'), format: 'A4' });
  check(paper.length > 20000, 'it goes to paper');
  await picture(page, 'report-paper', { fullPage: true });
  sound(opened, 'paper');
}

export async function each_figure_of_a_report_leads_to_its_runs({ browser }) {
  const { file, report } = left();
  const opened = await browser.open();
  const { page } = opened;
  const rows = () => page.evaluate(() => Number(document.querySelector('.campaign .row')?.getAttribute('aria-setsize') ?? 0));
  let figures = 0;
  for (const by of ['mode', 'plan']) {
    const view = `file://${file}#/campaign/demo?by=${by}`;
    await page.goto(view);
    await shown(page, '.matrix');
    const cells = await page.locator('.matrix td a').evaluateAll((links) => links.map((link) => [link.getAttribute('href'), Number(link.querySelector('small').textContent.slice(1)), link.title]));
    const sum = (words) => cells.reduce((all, cell) => all + Number(new RegExp(`(\\d+) ${words}`).exec(cell[2])[1]), 0);
    check(sum(by === 'mode' ? 'necessary' : 'verified') === report.funnel.verified && sum('flipped') === report.funnel.flipped, `${by}: sums of the matrix`);
    for (const [href, attempts] of cells) {
      await page.evaluate((href) => (location.hash = href), href);
      await arrived(page, href);
      await shown(page, '.campaign .row');
      check((await rows()) === attempts, `${href}: ${await rows()} runs of ${attempts}`);
      figures += 1;
    }
  }
  await page.goto(`file://${file}#/campaign/demo?class=verified`);
  await shown(page, '.row');
  check((await rows()) === report.classes.verified, 'the runs of a class');
  await page.click('.campaign .row');
  await shown(page, '.run .step .changed');
  check((await page.locator('.tabs').first().innerText()).includes('Beside its twin'), 'its twin is in the file');
  await page.click('text=Beside its twin');
  await shown(page, '.compare .step');
  await page.locator('.two a').first().click();
  await shown(page, '.run .step h2');
  sound(opened, 'figures');
  return `${figures} figures`;
}

export async function a_report_is_read_by_keys_alone({ browser }) {
  const { file } = left();
  const opened = await browser.open();
  const { page } = opened;
  const at = (part) => arrived(page, part);
  const tabs = async (most, there) => {
    for (let pressed = 0; pressed < most; pressed += 1) {
      await page.keyboard.press('Tab');
      if (await page.evaluate(there)) return;
    }
    throw new Error(`nothing after ${most} tabs: ${there}`);
  };
  await page.goto(`file://${file}`);
  await shown(page, '.matrix');
  await at('/campaign/demo');
  await tabs(30, () => document.activeElement.closest('.matrix') !== null);
  await page.keyboard.press('Enter');
  await at('agent=');
  await tabs(40, () => document.activeElement.getAttribute('role') === 'listbox');
  await page.keyboard.press('ArrowDown');
  check((await page.locator('.row.chosen').getAttribute('aria-posinset')) === '2', 'the second is chosen');
  const chosen = await page.locator('.row.chosen .id').innerText();
  check((await page.locator('.known-run h3').innerText()).includes(chosen), 'what is known of it is told');
  await page.keyboard.press('Enter');
  await at(`/run/${chosen}`);
  await shown(page, '.step h2');
  await page.keyboard.press('u');
  await shown(page, '.places');
  sound(opened, 'keys');
}

export async function what_is_not_in_a_file_is_counted_and_said({ browser }) {
  const { dir, report } = left();
  const copy = path.join(fresh('partly'), 'demo');
  cpSync(dir, copy, { recursive: true });
  const [gone, torn] = report.cells.map((cell) => cell.run);
  rmSync(path.join(copy, 'logs', gone), { recursive: true });
  writeFileSync(path.join(copy, 'logs', torn, 'log.jsonl.zst'), 'no log');
  const file = path.join(copy, 'part.html');
  aegis(['view', copy, '--bundle', file, '--overwrite']);
  const opened = await browser.open();
  const { page } = opened;
  await page.goto(`file://${file}#/campaign/demo`);
  await shown(page, '.row');
  check((await page.locator('.head').innerText()).includes('1 run is not in this file'), 'the unreadable one is counted');
  for (const run of [gone, torn]) {
    check((await page.locator('.known-run .command').innerText()).includes(`aegis view logs/${run}`), `the way to ${run}`);
    await page.locator('.list').press('ArrowDown');
  }
  check((await page.locator('.known-run .command').count()) === 0, 'the third is in the file');
  const found = await findings(page);
  check(found.length === 0, `axe: ${found.join('\n')}`);
  sound(opened, 'partly');
}

export async function hostile_reports_are_inert({ browser }) {
  const { dir } = left();
  const copy = path.join(fresh('hostile-report'), 'demo');
  cpSync(dir, copy, { recursive: true });
  let next = 0;
  // Each text of the report that is not a word of the format becomes one that means harm.
  const kept = ['run', 'class', 'code', 'taxonomy', 'mode', 'side', 'position', 'left_out'];
  const harmful = (value, name) => {
    if (typeof value === 'string') return kept.includes(name) ? value : TEXTS[next++ % TEXTS.length];
    if (Array.isArray(value)) return value.map((one) => harmful(one, name));
    return value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, harmful(one, name)])) : value;
  };
  const report = harmful(JSON.parse(readFileSync(path.join(copy, 'report.json'))), '');
  writeFileSync(path.join(copy, 'report.json'), JSON.stringify(report));
  const file = path.join(copy, 'hostile.html');
  aegis(['view', copy, '--bundle', file, '--overwrite']);
  const opened = await browser.open();
  const { page } = opened;
  for (const by of ['', 'plan']) {
    await page.goto(`file://${file}#/campaign/demo?by=${by}`);
    await shown(page, '.matrix');
    await page.emulateMedia({ media: 'print' });
    await page.waitForFunction((rows) => document.querySelectorAll('.row').length === rows, report.cells.length);
    const seen = await page.evaluate(() => ({
      harmed: window.harmed ?? ({}).harmed ?? null,
      strange: document.querySelectorAll('#app script, #app img, #app iframe, #app object, #app style, #app form, #app video, #app base').length,
      bare: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(document.querySelector('#app').textContent),
    }));
    check(seen.harmed === null && seen.strange === 0 && !seen.bare, JSON.stringify(seen));
    await page.emulateMedia({ media: 'screen' });
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(over <= 0, `${over} pixels too wide`);
    await picture(page, `hostile-report-${by || 'mode'}`);
  }
  sound(opened, 'hostile');
  return `${next} texts`;
}
