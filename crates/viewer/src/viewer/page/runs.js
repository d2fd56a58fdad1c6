/**
 * What there is: campaigns, datasets, and the runs, filtered and sorted.
 */

import { html, useRef, useState } from './vendor/preact.js';
import { isFile, useAnswer, useRuns } from './source.js';
import { address, go } from './route.js';
import { useKeys } from './keys.js';
import { Awaited, Head, LeftOut, Tag } from './part.js';
import { Outcome } from './marks.js';
import { Line } from './text.js';
import { List } from './list.js';
import { accountWords, count, duration, many, numbered, plain, when } from './format.js';

const SORTS = {
  began: (a, b) => (a.started < b.started ? 1 : -1),
  outcome: (a, b) => a.outcome.localeCompare(b.outcome),
  calls: (a, b) => (b.calls ?? 0) - (a.calls ?? 0),
  seconds: (a, b) => (b.seconds ?? 0) - (a.seconds ?? 0),
  label: (a, b) => labelText(b).length - labelText(a).length || labelText(a).localeCompare(labelText(b)),
};

const KINDS = ['clean', 'control', 'treated', 'decoy'];

function labelText(row) {
  if (!row.label) return '';
  const errors = row.label.errors.map((error) => `${error.mode ?? ''} ${numbered(error)} at step ${error.step}`.trim());
  const named = `${plain(row.label.status)} ${errors.join('; ')}`;
  return row.label.refused ? `refused (${named}): ${row.label.refused}` : named;
}

/** Whether a row has what is sought, anywhere in its words. */
function has(row, words) {
  const all = [row.run, row.program, row.task, row.kind, row.planted, row.agents.join(' '), row.outcome, labelText(row), row.trace, row.suspected && `suspected ${row.suspected}`, row.plan, row.class, row.campaign, row.imported && `imported from ${row.imported}`, row.kept && 'kept'];
  const text = all.filter(Boolean).join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** The rows that filter and order leave. `set` is what the address sets. */
export function chosenRows(rows, set) {
  const words = (set.q ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const kept = rows.filter(
    (row) =>
      (set.outcome ? row.outcome === set.outcome : true) &&
      (set.kind ? row.kind === set.kind : true) &&
      (set.labelled ? row.label : true) &&
      (set.trials ? true : !row.trial_of) &&
      (set.campaign ? row.campaign === set.campaign : true) &&
      has(row, words),
  );
  return kept.sort(SORTS[set.sort] ?? SORTS.began);
}

/** The screen. */
export function Runs({ set }) {
  const answer = useAnswer('tree');
  return html`<${Awaited} answer=${answer}>${(tree) => html`<${All} tree=${tree} set=${set} />`}<//>`;
}

function All({ tree, set }) {
  const [cursor, setCursor] = useState(0);
  const filter = useRef(null);
  const found = useRuns(tree, set, chosenRows);
  const rows = found?.rows ?? [];
  const all = tree.total ?? tree.runs.length;
  const change = (more) => go(address([], { ...set, ...more }), { replace: true });
  const texts = found?.texts;
  const held = new Map(texts?.found.map((run) => [run.key, run.steps]));
  const open = (at) => rows[at] && go(texts ? address(['run', rows[at].key, String(held.get(rows[at].key)[0].step)], { q: set.text.trim() }) : address(['run', rows[at].key]));
  const move = (by) => setCursor(Math.min(rows.length - 1, Math.max(0, cursor + by)));
  useKeys({ '/': () => filter.current?.focus(), j: () => move(1), k: () => move(-1), Enter: () => open(cursor) });
  const trials = tree.trials ?? tree.runs.filter((row) => row.trial_of).length;
  return html`<main class="runs">
    <${Head} title="Runs" aside=${html`<span class="soft">${found ? count(found.total) : '…'} of ${count(all)}${tree.annotator ? html`; ${count(tree.annotated.length)} annotated by <${Line} text=${tree.annotator} />` : ''}</span>`}>
      ${(tree.campaigns.length > 0 || tree.datasets.length > 0) && html`<ul class="places">
        ${tree.campaigns.map((place) => html`<li><a href=${address(['campaign', place.key])}><b>${place.key}</b> campaign</a></li>`)}
        ${tree.datasets.map((place) => html`<li><a href=${address(['dataset', place.key])}><b>${place.key}</b> dataset</a></li>`)}</ul>`}
      <${LeftOut} number=${tree.left_out} />
      <form class="filter" role="search" onSubmit=${(event) => event.preventDefault()}>
        <input type="search" ref=${filter} value=${set.q ?? ''} placeholder="Filter: agent, task, mode, plan…" aria-label="Filter" onInput=${(event) => change({ q: event.currentTarget.value })} />
        ${!isFile && html`<input type="search" value=${set.text ?? ''} placeholder="Search the texts of all runs" aria-label="Search the texts of all runs" onInput=${(event) => change({ text: event.currentTarget.value })} />`}
        <select aria-label="Outcome" onChange=${(event) => change({ outcome: event.currentTarget.value })}>
          ${['', 'success', 'failure', 'unknown'].map((one) => html`<option value=${one} selected=${one === (set.outcome ?? '')}>${one || 'every outcome'}</option>`)}</select>
        <select aria-label="Kind" onChange=${(event) => change({ kind: event.currentTarget.value })}>
          ${['', ...KINDS].map((one) => html`<option value=${one} selected=${one === (set.kind ?? '')}>${one || 'every kind'}</option>`)}</select>
        <select aria-label="Order" onChange=${(event) => change({ sort: event.currentTarget.value })}>
          ${Object.keys(SORTS).map((one) => html`<option value=${one === 'began' ? '' : one} selected=${one === (set.sort || 'began')}>${one === 'began' ? 'newest first' : `by ${one}`}</option>`)}</select>
        <label><input type="checkbox" checked=${Boolean(set.labelled)} onChange=${(event) => change({ labelled: event.currentTarget.checked ? '1' : '' })} /> labelled</label>
        ${trials > 0 && html`<label><input type="checkbox" checked=${Boolean(set.trials)} onChange=${(event) => change({ trials: event.currentTarget.checked ? '1' : '' })} /> ${many(trials, 'run')} of traces</label>`}
      </form>
    <//>
    ${texts && html`<p class="note" role="status">${many(texts.searched, 'run')} of ${count(texts.of)} searched${texts.unreadable > 0 && `, ${count(texts.unreadable)} could not be read`}.${texts.searched < texts.of && ' Filter to search fewer.'}</p>`}
    ${found && rows.length < found.total && html`<p class="note">The first ${count(rows.length)} are shown: filter for the others.</p>`}
    ${!found ? html`<p class="wait">Reading…</p>` : rows.length === 0
      ? html`<p class="note">${tree.runs.length ? 'No run has all of this.' : html`No run was found. <code>aegis run -- CMD</code> records one.`}</p>`
      : html`<${List} rows=${rows} height=${58} label="Runs" id="run" chosen=${cursor} choose=${setCursor} open=${open} draw=${(row) => html`<${RunRow} row=${row} annotated=${tree.annotated?.includes(row.key)} held=${held.get(row.key)} />`} />`}
  </main>`;
}

/** A command without the place of its program. */
function unplaced(command) {
  return command?.replace(/^\S*\//, '');
}

/** A run in the list: what was asked of it, what it is in an experiment, what was planted and came of it; its id last. */
export function RunRow({ row, annotated = false, held = null }) {
  const planted = row.kind === 'clean' || row.kind === 'control' ? null : row.planted ?? row.plan;
  return html`<span class="what"><${Line} text=${row.task ?? unplaced(row.program) ?? row.key} /></span>
    <${Outcome} verdict=${row.outcome} />
    <span class="kind"><${Tag} kind=${row.kind === 'clean' || row.kind === 'control' ? '' : 'planted'}>${row.imported ? 'imported' : row.kind}<//>${row.origin && html` <span class="soft">for a ${row.origin}</span>`}${planted && html` <${Line} text=${planted} />`}</span>
    <span class="some">${when(row.started)} · ${row.calls === null ? 'being written' : many(row.calls, 'call')}${row.seconds === null ? '' : ` · ${duration(1000 * row.seconds)}`}</span>
    <span class="id"><${Line} text=${row.key} />${row.trial_of && html` <${Tag}>trial of ${row.trial_of}<//>`}${annotated && html` <${Tag} kind="good">annotated<//>`}</span>
    <span class="who"><${Line} text=${row.agents.join(', ')} /></span>
    <span class="label">${held && html`<${Line} text=${`step ${held[0].step}: ${held[0].text}`} />${held.length > 1 && html`<span class="soft">and ${many(held.length - 1, 'step')} more</span>`}`}${row.unreadable ? html`<${Tag} kind="bad">unreadable<//> <${Line} text=${row.unreadable} />` : html`<${Line} text=${labelText(row)} />`}
      ${accountWords(row.account) && html`<span class="soft">${accountWords(row.account)}</span>`}${row.kept && html`<span class="soft">kept</span>`}${row.imported && html`<span class="soft">imported from ${row.imported}</span>`}${row.trace && html`<${Line} class="soft" text=${row.trace} />`}${row.suspected && html`<${Line} class="soft" text=${`suspected: ${row.suspected}`} />`}${!row.label && row.class && html`<span class="soft">${plain(row.class)}</span>`}</span>`;
}
