/**
 * What a call is, by shape and by colour: each mark has a form of its own, so that none is told by colour alone.
 */

import { html } from './vendor/preact.js';
import { plain } from './format.js';

/** Marks in the order in which they win: form (of a 16 × 16 field), colour, words. */
export const MARKS = {
  labelled: { form: 'M8 1 15 8 8 15 1 8Z', colour: 'bad', words: 'labelled: the label names it' },
  'earliest flip': { form: 'M8 1 15 8 8 15 1 8Z', colour: 'bad', words: 'the earliest flip: the earliest step whose correction heals the run' },
  commitment: { form: 'M8 1 15 8 8 15 1 8Z', colour: 'bad', words: 'the commitment: after it the failure stands' },
  flip: { form: 'M8 1 15 8 8 15 1 8Z', colour: 'bad', words: 'its correction heals the run' },
  coupled: { form: 'M8 1 15 8 8 15 1 8Z', colour: 'bad', words: 'heals the run together with another' },
  injected: { form: 'M8 2 15 14 1 14Z', colour: 'planted', words: 'an injection changed it' },
  error: { form: 'M3 1 8 6 13 1 15 3 10 8 15 13 13 15 8 10 3 15 1 13 6 8 1 3Z', colour: 'bad', words: 'it ended with an error' },
  suspected: { form: 'M8 1 15 8 8 15 1 8ZM8 4 4 8 8 12 12 8Z', colour: 'odd', words: 'suspected: a method names it from the log alone' },
  watched: { form: 'M3 1h10l-3 4 3 4H5v6H3Z', colour: 'odd', words: 'a rule saw a sign of trouble' },
  retried: { form: 'M2 3h12v3H2zM2 10h12v3H2z', colour: 'odd', words: 'it was retried' },
  unread: { form: 'M2 2h12v12H2ZM4 4v8h8V4ZM5 7h6v2H5Z', colour: 'odd', words: 'unread: no text and no call of it was read' },
  'partly read': { form: 'M2 2h12v12H2ZM4 4v8h8V4ZM8 4h4v8H8Z', colour: 'odd', words: 'partly read: a piece of it stands in no view' },
  'not delivered': { form: 'M8 2 15 14 1 14ZM8 6 4.5 12h7Z', colour: 'faint', words: 'an injection that did not arrive' },
  open: { form: 'M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2ZM8 4.5a3.5 3.5 0 1 1 0 7a3.5 3.5 0 1 1 0-7Z', colour: 'faint', words: 'not answered yet' },
  recorded: { form: 'M2 2h12v12H2ZM4 4v8h8V4Z', colour: 'faint', words: 'recorded: another run’s record answered it' },
  altered_again: { form: 'M8 2 15 14 1 14ZM8 6 4.5 12h7Z', colour: 'planted', words: 'altered again: it got the altered bytes of another run' },
  replaced: { form: 'M2 2h12v12H2ZM4 4v8h8V4Z', colour: 'planted', words: 'replaced: a fork, a trace or a retry set its reply' },
  remade: { form: 'M2 2h12v12H2ZM4 4v8h8V4Z', colour: 'faint', words: 'remade from a trace' },
  other: { form: 'M2 2h12v12H2ZM4 4v8h8V4Z', colour: 'faint', words: 'its reply is of unknown origin' },
  live: { form: 'M8 3a5 5 0 1 0 0 10A5 5 0 1 0 8 3Z', colour: 'live', words: 'live: the upstream answered it' },
};

const QUIET = ['overlapping', 'ambiguous'];

/** The marks of a row, the weightiest first; the state is one of them. */
export function marksOf(row) {
  const quiet = ['live', 'recorded', 'remade'].includes(row.state);
  const marks = quiet ? row.marks : [...row.marks, row.state];
  const known = Object.keys(MARKS).filter((name) => marks.includes(name));
  return known.length ? known : [row.state];
}

/** One mark. */
export function Mark({ name }) {
  const mark = MARKS[name] ?? MARKS.live;
  return html`<svg class="mark ${mark.colour}" viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
    <path fill-rule="evenodd" d=${mark.form} /></svg>`;
}

/** All marks of a row, in words for those who hear the page. */
export function Marks({ row }) {
  const marks = marksOf(row);
  // One of a form: two diamonds would say no more than one, and leave no room for the triangle.
  const apart = marks.filter((name, at) => marks.findIndex((other) => MARKS[other].form === MARKS[name].form) === at);
  return html`<span class="marks" title=${describe(row)}>${apart.slice(0, 2).map((name) => html`<${Mark} name=${name} />`)}</span>`;
}

/** A row's marks in words. */
export function describe(row) {
  const words = marksOf(row).map((name) => MARKS[name].words);
  return [...words, ...row.marks.filter((mark) => QUIET.includes(mark)).map(plain)].join('; ');
}

const FORMS = { success: '✓', failure: '✗', unknown: '?' };

/** What a run achieved: a sign and a word. */
export function Outcome({ verdict }) {
  return html`<span class="outcome ${verdict}"><span aria-hidden="true">${FORMS[verdict] ?? '?'}</span> ${verdict}</span>`;
}

/** What the signs mean, for those that a run has. */
export function Legend({ rows }) {
  const seen = new Set();
  for (const row of rows) for (const name of marksOf(row)) seen.add(name);
  const names = Object.keys(MARKS).filter((name) => seen.has(name));
  return html`<ul class="legend" aria-label="Signs">${names.map((name) => html`<li><${Mark} name=${name} /> ${plain(name)}</li>`)}</ul>`;
}
