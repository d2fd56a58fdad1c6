/**
 * Two runs side by side: calls paired by agent, what is equal folded, the first difference marked.
 */

import { html, useMemo, useState } from './vendor/preact.js';
import { useAnswer, useRuns } from './source.js';
import { address, go } from './route.js';
import { useKeys } from './keys.js';
import { Awaited, Head, Tag } from './part.js';
import { Outcome } from './marks.js';
import { Line, Pieces } from './text.js';
import { List } from './list.js';
import { many, numbered } from './format.js';
import { RunRow, chosenRows } from './runs.js';

const WORDS = { request: 'request differs', reply: 'reply differs', both: 'both differ', only_a: 'only in the first', only_b: 'only in the second', same: 'equal' };

/** The pairs with runs of equal ones folded, but for those that the reader opened. */
export function folded(pairs, opened) {
  const rows = [];
  pairs.forEach((pair, at) => {
    const last = rows[rows.length - 1];
    if (pair.change !== 'same' || pair.sent?.length) rows.push({ pair, at });
    else if (last?.equal && !opened.has(last.from)) last.equal.push({ pair, at });
    else if (opened.has(at) || (last && last.shownFrom !== undefined)) rows.push({ pair, at, shownFrom: last?.shownFrom ?? at });
    else rows.push({ equal: [{ pair, at }], from: at });
  });
  return rows;
}

/** The screen of two runs. */
export function Compare({ parts }) {
  const [a, b] = parts;
  const answer = useAnswer(`diff/${a}/${b}`);
  return html`<main class="compare"><${Awaited} answer=${answer}>${(diff) => html`<${Two} key=${`${a} ${b}`} diff=${diff} a=${a} b=${b} />`}<//></main>`;
}

function Two({ diff, a, b }) {
  const [opened, setOpened] = useState(() => new Set());
  const rows = useMemo(() => folded(diff.pairs, opened), [diff, opened]);
  const [at, setAt] = useState(null);
  const chosen = at ?? diff.first_divergence;
  const cursor = rows.findIndex((row) => row.at === chosen || row.equal?.some((one) => one.at === chosen));
  const pair = chosen === null ? null : diff.pairs[chosen];
  const move = (by) => {
    const row = rows[Math.min(rows.length - 1, Math.max(0, cursor + by))];
    if (row) setAt(row.equal ? row.from : row.at);
  };
  useKeys({ j: () => move(1), k: () => move(-1) });
  const open = (index) => rows[index]?.equal && setOpened(new Set([...opened, rows[index].from]));
  return html`
    <${Head} title="Two runs" trail=${[[b, address(['run', b])]]}>
      <div class="two"><p><${Tag}>the first<//> <a href=${address(['run', a])}><${Line} text=${a} /></a> <${Outcome} verdict=${diff.a.outcome} /></p>
        <p><${Tag}>the second<//> <a href=${address(['run', b])}><${Line} text=${b} /></a> <${Outcome} verdict=${diff.b.outcome} />
          <a class="quiet" href=${address(['diff', b, a])}>the other way round</a></p></div>
      <p>${diff.same ? 'They are equal, ids and times aside.' : html`They part at <b>${pairName(diff.pairs[diff.first_divergence])}</b>${
        diff.spread.length ? html`; its new words are repeated in the second at ${diff.spread.map((step, index) => html`${index > 0 && ', '}<a href=${address(['run', b, step])}>step ${step}</a>`)}` : ''
      }.`}</p>
    <//>
    <div class="columns">
      <${List} rows=${rows} height=${40} label="Pairs of calls" id="pair" chosen=${cursor} choose=${(index) => setAt(rows[index].equal ? rows[index].from : rows[index].at)} open=${open}
        draw=${(row) => html`<${PairRow} row=${row} first=${row.at === diff.first_divergence} />`} />
      ${pair ? html`<${Difference} pair=${pair} first=${chosen === diff.first_divergence} a=${a} b=${b} />` : html`<p class="note">Nothing differs.</p>`}
    </div>`;
}

function pairName(pair) {
  return `${numbered(pair)}, call ${(pair.a ?? pair.b).call}`;
}

function PairRow({ row, first }) {
  if (row.equal) return html`<span class="folded">${row.equal.length} equal${row.equal.length > 1 ? `: ${pairName(row.equal[0].pair)} to ${pairName(row.equal.at(-1).pair)}` : `: ${pairName(row.equal[0].pair)}`}</span>`;
  const { pair } = row;
  return html`<span class="number">${pair.a?.step ?? '–'}</span><span class="number">${pair.b?.step ?? '–'}</span>
    <span class="who"><${Line} text=${pairName(pair)} /></span><span class="words ${pair.change}">${first && html`<${Tag} kind="bad">they part<//> `}${pair.sent?.length ? html`<${Tag} kind="planted">request edited<//> ` : ''}${pair.change === 'same' && pair.sent?.length ? '' : WORDS[pair.change]}</span>`;
}

function Difference({ pair, first, a, b }) {
  return html`<section class="step" aria-label="The difference">
    <h2>${first ? 'First difference: ' : ''}<${Line} text=${pairName(pair)} /></h2>
    <p class="note">${pair.a && html`<a href=${address(['run', a, pair.a.step])}>step ${pair.a.step} of the first</a>`}${pair.a && pair.b && ' · '}${pair.b && html`<a href=${address(['run', b, pair.b.step])}>step ${pair.b.step} of the second</a>`}</p>
    ${pair.sent?.length > 0 && html`<p class="planted">An injection edited the request: the model got another one than the agent asked.</p>${pair.sent.map((block) => html`<div class="said"><p class="speaker"><${Line} text=${block.place} /></p><${Pieces} pieces=${block.pieces} /></div>`)}`}
    ${pair.change === 'same' && html`<p>Asked and answered alike.</p>`}
    ${pair.change === 'only_a' && html`<p>The second run has no such call.</p>`}${pair.change === 'only_b' && html`<p>The first run has no such call.</p>`}
    ${pair.change !== 'same' && pair.a && pair.b && pair.blocks.length === 0 && html`<p class="note">The messages are equal; parameters or tools differ.</p>`}
    ${pair.blocks.map((block) => html`<div class="said"><p class="speaker"><${Line} text=${block.place} /></p><${Pieces} pieces=${block.pieces} /></div>`)}</section>`;
}

/** The screen that asks which run to compare with. */
export function Choose({ parts, set }) {
  const [own] = parts;
  const answer = useAnswer('tree');
  return html`<main class="runs"><${Head} title="Compare with…" trail=${[[own, address(['run', own])]]}>
      <form class="filter" role="search" onSubmit=${(event) => event.preventDefault()}><input type="search" value=${set.q ?? ''} aria-label="Filter" placeholder="Filter"
        onInput=${(event) => go(address(['compare', own], { ...set, q: event.currentTarget.value }), { replace: true })} /></form><//>
    <${Awaited} answer=${answer}>${(tree) => {
      return html`<${Others} tree=${tree} own=${own} set=${set} />`;
    }}<//></main>`;
}

function Others({ tree, own, set }) {
  const [cursor, setCursor] = useState(0);
  const found = useRuns(tree, set, chosenRows);
  if (!found) return html`<p class="wait">Reading…</p>`;
  const rows = found.rows.filter((row) => row.key !== own && !row.unreadable);
  if (!rows.length) return html`<p class="note">${many(0, 'other run')}.</p>`;
  return html`<${List} rows=${rows} height=${58} label="Runs" id="with" chosen=${cursor} choose=${setCursor} draw=${(row) => html`<${RunRow} row=${row} />`}
    open=${(at) => go(address(['diff', rows[at].key, own]))} />`;
}
