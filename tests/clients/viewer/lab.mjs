// What the tests stand on: a browser that may ask one address, a viewer, recordings.

import { spawn, spawnSync } from 'node:child_process';
import { createReadStream, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { chromium } from 'playwright-core';
import axe from 'axe-core';

export const work = process.env.AEGIS_WORK;
export const root = process.argv[2];
const pictures = process.env.AEGIS_PICTURES ?? path.join(work, 'pictures');

export function check(held, what) {
  if (!held) throw new Error(what);
}

/** Runs the binary to its end. */
export function aegis(args, { allow = [0], ...options } = {}) {
  const ran = spawnSync(process.env.AEGIS_BIN, args, { encoding: 'utf8', cwd: work, maxBuffer: 1 << 28, ...options });
  check(allow.includes(ran.status), `aegis ${args.join(' ')}: exit ${ran.status}\n${ran.stderr}`);
  return ran;
}

const started = new Set();
process.on('exit', () => started.forEach((child) => child.kill()));

/** Starts `aegis view`; `url` holds the token. A test that fails leaves none behind. */
export async function view(dirs) {
  const child = spawn(process.env.AEGIS_BIN, ['view', ...dirs], { cwd: work, stdio: ['ignore', 'pipe', 'pipe'] });
  started.add(child);
  const url = await new Promise((found, lost) => {
    let said = '';
    child.stdout.on('data', (data) => ((said += data), said.includes('\n') && found(said.trim())));
    child.on('exit', () => lost(new Error(`aegis view ended: ${said}`)));
  });
  return { url, origin: new URL(url).origin, token: url.split('#t=')[1], end: () => child.kill() };
}

/** A browser, a page in it, and what went wrong on that page. */
export async function browser() {
  const started = await chromium.launch({ executablePath: process.env.AEGIS_CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  const open = async (options = {}) => {
    const context = await started.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    const page = await context.newPage();
    const wrong = [];
    const asked = [];
    page.on('console', (message) => ['error', 'warning'].includes(message.type()) && wrong.push(message.text()));
    page.on('pageerror', (error) => wrong.push(String(error)));
    page.on('dialog', (dialog) => (wrong.push(`dialog ${dialog.message()}`), dialog.dismiss()));
    page.on('request', (request) => asked.push(request.url()));
    if (process.env.AEGIS_PAGE) await fromSource(page, path.resolve(root, process.env.AEGIS_PAGE));
    return { page, context, wrong, asked };
  };
  return { open, end: () => started.close() };
}

/** Answers the page's files from a directory instead of the binary. */
async function fromSource(page, dir) {
  const answer = (name) => async (route) => {
    const answered = await route.fetch();
    const file = path.join(dir, name ?? new URL(route.request().url()).pathname.replace('/page/', ''));
    await route.fulfill({ response: answered, status: 200, body: readFileSync(file), headers: { ...answered.headers(), 'content-type': kind(file) } });
  };
  await page.route(/^http:\/\/127\.0\.0\.1:\d+\/page\//, answer());
  await page.route(/^http:\/\/127\.0\.0\.1:\d+\/(#.*)?$/, answer('index.html'));
}

function kind(file) {
  return { '.js': 'text/javascript', '.css': 'text/css', '.html': 'text/html' }[path.extname(file)];
}

/** Findings of axe on the page as it stands. */
export async function findings(page) {
  // The policy forbids scripts of others; this one goes in beside it, as a tool of the browser does.
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations.map((one) => `${one.id}: ${one.nodes.length} × ${one.help}: ${one.nodes[0].html.slice(0, 160)} ${one.nodes[0].any?.[0]?.message ?? ''}`);
}

/** A picture, for people to look at. */
export async function picture(page, name, options = {}) {
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: path.join(pictures, `${name}.png`), ...options });
}

/** Waits until the page has drawn an address with `part` in it. Before that, keys and questions would meet the screen that is left. */
export async function arrived(page, part = '') {
  const drawn = (part) => location.hash.includes(part) && (document.getElementById('app')?.dataset.shown ?? location.hash) === location.hash;
  await page.waitForFunction(drawn, part, { timeout: 8000 });
}

/** Waits until the page has drawn where it is and shows a selector, and nothing is awaited any more. */
export async function shown(page, selector) {
  await page.waitForSelector(selector, { timeout: 20000 });
  await arrived(page);
  await page.waitForSelector(selector, { timeout: 20000 });
  await page.waitForFunction(() => !document.querySelector('.wait'), null, { timeout: 20000 });
}

/** A fresh directory below the tests' own. */
export function fresh(name) {
  const dir = path.join(work, name);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  return dir;
}

/** A directory that several tests look at, made by the first of them; and again where the binary is newer. */
export function once(name, make) {
  const dir = path.join(work, name);
  if (!existsSync(dir) || statSync(dir).mtimeMs < statSync(process.env.AEGIS_BIN).mtimeMs) make(dir);
  return dir;
}

const QUESTION = 'Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?';

/** A campaign with its dataset, and two runs of which one is traced. */
export function recorded() {
  return once('recorded', (dir) => {
    fresh('recorded');
    aegis(['demo', '--dir', path.join(dir, 'demo')], { allow: [0] });
    const config = path.join(root, 'examples/pipeline/aegis.toml');
    const env = { ...process.env, AEGIS_LOG_DIR: path.join(dir, 'logs') };
    const program = ['--', process.env.AEGIS_BIN, 'example', 'pipeline', '--task', QUESTION];
    const common = ['--upstream', 'simulator', '--config', config];
    const judged = ['--check', "grep -q 'ANSWER: 84'"];
    aegis(['run', ...common, '--run', 'first', ...judged, ...program], { env });
    aegis(['run', ...common, '--run', 'second', '--plan', path.join(root, 'plans/corrupt-number.toml'), ...judged, ...program], { env, allow: [0, 1] });
    const [first, second] = ['first', 'second'].map((run) => path.join(dir, 'logs', run));
    aegis(['trace', second, '--twin', first, ...common, ...judged, ...program], { env });
    // What the judge is asked is no run to look at here. The scripted model knows no answer that can be read.
    const asked = { env: { ...process.env, AEGIS_LOG_DIR: path.join(fresh('recorded-asked'), 'logs') } };
    aegis(['attribute', second, '--method', 'alignment,spectrum,rules'], asked);
    aegis(['attribute', second, '--method', 'a2p,judge-critics', '--upstream', 'simulator'], asked);
    aegis(['attribute', path.join(dir, 'demo'), '--method', 'alignment,rules', '--out', path.join(dir, 'predictions.jsonl')], asked);
  });
}

/** A model that answers what it is told to; `texts` one after the other. */
export function model(texts, delay = 0) {
  let calls = 0;
  const server = createServer((request, response) => {
    const body = [];
    request.on('data', (data) => body.push(data));
    request.on('end', () => {
      const content = texts[calls++ % texts.length];
      const answer = { id: 'c', object: 'chat.completion', created: 0, model: 'm', choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }], usage: { prompt_tokens: 9, completion_tokens: 7, total_tokens: 16 } };
      setTimeout(() => response.setHeader('content-type', 'application/json').end(JSON.stringify(answer)), delay);
    });
  });
  return new Promise((ready) => server.listen(0, '127.0.0.1', () => ready({ url: `http://127.0.0.1:${server.address().port}/v1`, end: () => server.close() })));
}

/** Serves one page of somebody else, to see what it can read. */
export function stranger(file) {
  const server = createServer((request, response) => createReadStream(file).pipe(response.setHeader('content-type', 'text/html')));
  return new Promise((ready) => server.listen(0, '127.0.0.1', () => ready({ url: `http://127.0.0.1:${server.address().port}/`, end: () => server.close() })));
}
