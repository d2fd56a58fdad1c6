/**
 * Where data comes from: the server that sent the page, or the file that the page is.
 */

import { useMemo, useState, useEffect } from './vendor/preact.js';

const held = document.getElementById('bundle');
const bundle = held ? JSON.parse(held.textContent) : null;
const blocks = new Map();
const answers = new Map();
/** Answers that are kept; the oldest go. */
const KEPT = 400;

/** Whether the page is a file: nothing can be asked that does not stand in it. */
export const isFile = bundle !== null;
/** Where a file opens if its address says nothing. */
export const start = bundle?.start ?? '';

/** Shows the token of the address once, and takes it out of the address. */
export async function openSession() {
  const shown = /^#t=([0-9a-f]+)/.exec(location.hash);
  if (isFile || !shown) return;
  history.replaceState(null, '', location.pathname + '#/');
  const answer = await fetch('/session', { method: 'POST', body: shown[1] });
  if (!answer.ok) throw new Error('The address is of an earlier start: take the one that aegis view prints now.');
}

/** The answer to a path; `fresh` asks again. */
export function get(path, { fresh = false } = {}) {
  const known = answers.get(path);
  if (known && !fresh) return known;
  const asked = isFile ? fromFile(path) : fromServer(path);
  answers.set(path, asked);
  if (answers.size > KEPT) answers.delete(answers.keys().next().value);
  asked.catch(() => answers.delete(path));
  return asked;
}

async function fromServer(path) {
  const answer = await fetch(`/api/${path}`);
  const data = await answer.json().catch(() => ({ error: `no answer that can be read: ${answer.status}` }));
  if (!answer.ok) throw new Error(data.error ?? `status ${answer.status}`);
  return data;
}

/** Sends what was said; the answers to `stale` paths are asked anew. */
export async function send(path, said, stale = []) {
  const answer = await fetch(`/api/${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(said) });
  const data = await answer.json().catch(() => ({ error: `no answer that can be read: ${answer.status}` }));
  if (!answer.ok) throw new Error(data.error ?? `status ${answer.status}`);
  for (const one of stale) answers.delete(one);
  return data;
}

async function fromFile(path) {
  if (path === 'tree') return bundle.tree;
  const number = bundle.blocks[path];
  if (number === undefined) throw new Error('This is not in the file. `aegis view` shows all of it.');
  if (!blocks.has(number)) blocks.set(number, unpack(document.getElementById(`block-${number}`).textContent));
  return (await blocks.get(number))[path];
}

async function unpack(base64) {
  const packed = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).json();
}

/**
 * The runs of a list that an address asks for: `{ rows, total }`, null while they are awaited. The page has all of a short list; of
 * a long one the server is asked.
 */
export function useRuns(tree, set, chosen) {
  const all = tree?.runs ?? [];
  const long = !isFile && tree && (tree.total > all.length || set.text?.trim());
  const { q, text, outcome, kind, labelled, trials, campaign, sort } = set;
  const asked = JSON.stringify({ q, text, outcome, kind, labelled, trials, campaign, sort });
  const [rested, setRested] = useState(asked);
  useEffect(() => {
    // Asked when the hand rests.
    const timer = setTimeout(() => setRested(asked), 200);
    return () => clearTimeout(timer);
  }, [asked]);
  const answer = useAnswer(long ? `runs/${encodeURIComponent(rested)}` : null);
  return useMemo(() => {
    if (long) return rested === asked ? (answer.data ?? null) : null;
    const rows = tree ? chosen(all, set) : [];
    return { rows, total: rows.length };
  }, [tree, asked, rested, answer.data]);
}

/** Follows a run that is written: calls back with each event. Returns how to end it. */
export function follow(run, told) {
  if (isFile) return () => {};
  const events = new EventSource(`/api/live/${run}`);
  events.onmessage = (event) => told(JSON.parse(event.data));
  return () => events.close();
}

/** The answer to a path in a component: `{ data, error }`, both empty while it is awaited. */
export function useAnswer(path) {
  const [answer, setAnswer] = useState({ path: null });
  useEffect(() => {
    if (!path) return undefined;
    let wanted = true;
    get(path).then(
      (data) => wanted && setAnswer({ path, data }),
      (error) => wanted && setAnswer({ path, error: error.message }),
    );
    return () => {
      wanted = false;
    };
  }, [path]);
  return answer.path === path ? answer : {};
}
