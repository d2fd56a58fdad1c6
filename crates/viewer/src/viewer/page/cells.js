/**
 * The injected runs of a campaign: the list, narrowed to the figure that the reader came from, and what is known of one.
 */

import { html, useEffect, useMemo, useRef, useState } from './vendor/preact.js';
import { isFile } from './source.js';
import { address, go } from './route.js';
import { useKeys } from './keys.js';
import { Command, Facts, Tag } from './part.js';
import { Line } from './text.js';
import { List } from './list.js';
import { arm, count, plain } from './format.js';

/** What narrows the list, as the address names it. */
const FILTERS = ['decoy', 'class', 'plan', 'system', 'task', 'mode', 'agent', 'operator'];

/** The list; `runs` are those that can be opened, `link(set)` the address of some of the list. */
export function Cells({ report, set, runs, link }) {
  const [cursor, setCursor] = useState(0);
  const keys = useMemo(() => new Map(runs.map((row) => [row.run, row.key])), [runs]);
  const filters = FILTERS.filter((one) => set[one]);
  const all = set.decoy ? report.decoy_cells ?? [] : report.cells;
  const rows = useMemo(() => all.filter((cell) => matches(cell, set)), [report, JSON.stringify(set)]);
  const chosen = Math.min(cursor, rows.length - 1);
  const open = (at) => keys.has(rows[at]?.run) && go(address(['run', keys.get(rows[at].run)]));
  const move = (by) => setCursor(Math.min(rows.length - 1, Math.max(0, chosen + by)));
  useKeys({ j: () => move(1), k: () => move(-1), g: () => setCursor(0), G: () => setCursor(rows.length - 1), Enter: () => open(chosen) });
  const place = useRef(null);
  // Who followed a figure is to see the runs that it counts.
  useEffect(() => {
    if (filters.length > 0) place.current.scrollIntoView({ block: 'nearest' });
  }, [filters.map((one) => set[one]).join()]);
  return html`<section ref=${place}><h2>${set.decoy ? 'Decoys' : 'Injected runs'} <small class="soft">${count(rows.length)} of ${count(all.length + (set.decoy ? 0 : report.more_cells ?? 0))}</small></h2>
    ${report.more_cells > 0 && html`<p class="note">${count(report.more_cells)} more are in report.json.</p>`}
    ${filters.length > 0 && html`<p class="classes">${filters.map((one) => html`<${Tag}>${one}: <${Line} text=${plain(set[one])} /><//> `)}<a href=${link({})}>all</a></p>`}
    ${rows.length > 0 && html`<${List} rows=${rows} height=${44} label="Injected runs" id="cell" chosen=${chosen} choose=${setCursor} open=${open}
      draw=${(cell) => html`<span class="id"><${Line} text=${cell.run ?? 'not run'} /></span><span class="what"><${Line} text=${`${cell.plan} · ${cell.system} · ${cell.task}`} /></span>
        <${Tag} kind=${cell.class === 'verified' ? 'bad' : ''}>${plain(cell.class)}<//><span class="some"><${Line} text=${[cell.why ?? cell.evidence, cell.proof].filter(Boolean).join(' · ')} /></span>`} />
      <${Known} cell=${rows[chosen]} run=${keys.get(rows[chosen].run)} />`}</section>`;
}

/** What is known of a run, and the way to it. */
function Known({ cell, run }) {
  const aims = (cell.aims ?? []).map((aim) => `${aim.mode?.code ?? 'fault'} by ${plain(aim.operator)} in ${aim.agent}${aim.side ? `, ${aim.side}` : ''}`);
  // Reports of earlier versions have no words for it, and call whatever they had not shown not necessary.
  const needs = cell.needs ?? (cell.necessity ?? []).map((one) => `${one.necessary ? 'necessary' : 'not shown'}: injection ${one.injection} at ${one.agent} (without it ${arm(one.executed.null)})`);
  return html`<section class="known-run" aria-label="The chosen run" aria-live="polite"><h3>${run ? html`<a href=${address(['run', run])}><${Line} text=${cell.run} /></a>` : html`<${Line} text=${cell.run ?? 'Not run'} />`} <${Tag} kind=${cell.class === 'verified' ? 'bad' : ''}>${plain(cell.class)}<//></h3>
    <${Facts} facts=${[
      ['plan, system, task', html`<${Line} text=${[cell.plan, cell.system, cell.task].join(' · ')} />`],
      ['aims at', aims.length ? html`<${Line} text=${aims.join('; ')} />` : null],
      ['call', cell.position && plain(cell.position)],
      ['expected', cell.expected && html`<${Line} text=${cell.expected} />`],
      ['answered', cell.answer && html`<${Line} text=${cell.answer} />`],
      ['evidence', cell.evidence && html`<${Line} text=${cell.evidence} />`],
      ['why', cell.why && html`<${Line} text=${cell.why} />`],
      ['proof', cell.proof && html`<${Line} text=${cell.proof} />`],
      ['claim', (cell.claim ?? null) === null ? null : `${cell.claim}; runs that met the same edit share one`],
      ['of several injections', needs.length ? html`<${Line} text=${needs.join('; ')} />` : null],
    ]} />
    ${!run && cell.run && (isFile
      ? html`<p class="note">Its recording is not in this file. Where the campaign lies:</p><${Command} text=${`aegis view logs/${cell.run}`} />`
      : html`<p class="note">Its recording is not below the directories that are shown.</p>`)}</section>`;
}

/** Whether a run belongs to a figure; reports of earlier versions do not say whom a run aimed at. */
function matches(cell, set) {
  if (['class', 'plan', 'system', 'task'].some((name) => set[name] && cell[name] !== set[name])) return false;
  if (!cell.aims || !(set.mode || set.agent || set.operator)) return true;
  const aims = (aim) => (!set.mode || (aim.mode?.code ?? 'fault') === set.mode) && (!set.agent || aim.agent === set.agent) && (!set.operator || aim.operator === set.operator);
  return cell.aims.some(aims);
}
