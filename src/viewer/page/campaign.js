/**
 * A campaign: from attempts to proof, where the yield lies, and every injected run behind each figure.
 */

import { html, useMemo, useState } from './vendor/preact.js';
import { useAnswer } from './source.js';
import { address, go } from './route.js';
import { Awaited, Bar, Facts, Head, Interval, Tabs, Tag } from './part.js';
import { Line } from './text.js';
import { List } from './list.js';
import { count, duration, many, percent, plain } from './format.js';

/** A share of fewer attempts is drawn hatched: it says little. */
const FEW = 5;

/** The screen. */
export function CampaignScreen({ parts, set }) {
  const [name] = parts;
  const answer = useAnswer(`campaign/${name}`);
  const tree = useAnswer('tree');
  return html`<main class="campaign"><${Awaited} answer=${answer}>${(report) => html`<${Shown} report=${report} name=${name} set=${set} runs=${tree.data?.runs ?? []} />`}<//></main>`;
}

function Shown({ report, name, set, runs }) {
  const { funnel, clean } = report;
  const steps = [['attempts', funnel.attempts], ['delivered', funnel.delivered], ['outcome flipped', funnel.flipped], ['verified', funnel.verified]];
  const by = set.by === 'plan' ? 'plan' : 'mode';
  return html`
    <${Head} title=${html`<${Line} text=${report.campaign} />`} aside=${html`<${Tag} kind=${report.complete ? '' : 'odd'}>${report.complete ? 'complete' : 'not complete'}<//>`}>
      <${Facts} facts=${[
        ['backend', report.backend], ['seed', report.seed], ['clean', `${count(clean.passed)} of ${count(clean.runs)} runs passed; ${count(clean.kept)} of ${count(clean.tasks)} tasks went on`],
        ['took', duration(1000 * report.seconds)], ['spent', `${count(report.cost.spent.calls)} calls; records answered ${percent(report.cost.saved_share)} of all tokens`],
      ]} /><//>
    <section><h2>From attempts to proof</h2>
      <ol class="funnel">${steps.map(([words, number]) => html`<li><span>${words}</span><${Bar} value=${number} most=${funnel.attempts} /><b>${count(number)}</b></li>`)}</ol>
      <p class="classes">${Object.entries(report.classes).map(([word, number]) => html`<a href=${address(['campaign', name], { ...set, class: word })}><${Tag}>${plain(word)} ${count(number)}<//></a> `)}</p></section>
    <section><h2>Where the yield lies</h2>
      <${Tabs} label="Matrix" chosen=${by} tabs=${[['mode', 'Mode × agent', address(['campaign', name], { ...set, by: '' })], ['plan', 'Plan × task', address(['campaign', name], { ...set, by: 'plan' })]]} />
      <${Matrix} report=${report} by=${by} name=${name} set=${set} /></section>
    ${by === 'mode' && html`<${Strata} strata=${report.strata} />`}
    <${Cells} report=${report} name=${name} set=${set} runs=${runs} />
    ${report.unmade.length > 0 && html`<section><h2>Edits that could not be made</h2><ul>${report.unmade.map((one) => html`<li>${plain(one.manipulator)}: <${Line} text=${one.why} /> (${many(one.runs, 'run')})</li>`)}</ul></section>`}
    ${report.tasks.length > 0 && html`<section><h2>Tasks out of the ordinary</h2><ul>${report.tasks.map((one) => html`<li><${Line} text=${one.task} /> of ${one.system}: ${one.left_out ? plain(one.left_out) : 'not repeatable'}</li>`)}</ul></section>`}`;
}

/** Sums of a matrix: `rows`, `columns`, and what stands where they meet. */
export function matrixOf(report, by) {
  const cells = new Map();
  const add = (row, column, sums) => {
    const key = JSON.stringify([row, column]);
    const cell = cells.get(key) ?? { row, column, attempts: 0, delivered: 0, flipped: 0, verified: 0 };
    for (const name of ['attempts', 'delivered', 'flipped', 'verified']) cell[name] += sums[name];
    cells.set(key, cell);
  };
  if (by === 'mode') {
    for (const one of report.strata) add(one.mode ?? 'fault', `${one.system}: ${one.agent}`, one);
  } else {
    const flips = ['verified', 'contradicted', 'unproven', 'void', 'flaky_task'];
    for (const one of report.cells) {
      add(one.plan, `${one.system}: ${one.task}`, { attempts: 1, delivered: one.class === 'unfinished' ? 0 : 1, flipped: flips.includes(one.class) ? 1 : 0, verified: one.class === 'verified' ? 1 : 0 });
    }
  }
  const sorted = (values) => [...new Set(values)].sort();
  const all = [...cells.values()];
  return { rows: sorted(all.map((cell) => cell.row)), columns: sorted(all.map((cell) => cell.column)), cell: (row, column) => cells.get(JSON.stringify([row, column])) };
}

function Matrix({ report, by, name, set }) {
  const matrix = useMemo(() => matrixOf(report, by), [report, by]);
  const link = (row, column) => {
    const [system, rest] = column.split(': ');
    return by === 'plan' ? address(['campaign', name], { ...set, plan: row, system, task: rest }) : address(['campaign', name], { ...set, system, mode: row, agent: rest });
  };
  return html`<div class="scrolls" tabindex="0" role="region" aria-label="Matrix"><table class="matrix">
    <thead><tr><td></td>${matrix.columns.map((column) => html`<th scope="col"><span><${Line} text=${column} /></span></th>`)}</tr></thead>
    <tbody>${matrix.rows.map((row) => html`<tr><th scope="row"><${Line} text=${row} /></th>${matrix.columns.map((column) => {
      const cell = matrix.cell(row, column);
      if (!cell) return html`<td class="none"><span class="unseen">none</span></td>`;
      const share = cell.attempts ? cell.verified / cell.attempts : 0;
      const words = `${cell.verified} verified, ${cell.flipped} flipped, ${cell.delivered} delivered of ${cell.attempts}`;
      return html`<td class=${cell.attempts < FEW ? 'few' : ''} style=${{ '--share': share.toFixed(2) }}><a href=${link(row, column)} title=${words}>${cell.verified}<small>/${cell.attempts}</small><span class="unseen"> ${row}, ${column}: ${words}</span></a></td>`;
    })}</tr>`)}</tbody></table></div>
    <p class="note">Verified of attempts; the stronger the colour, the greater the share; hatched where fewer than ${FEW} were tried.</p>`;
}

function Strata({ strata }) {
  return html`<details open=${strata.length <= 12}><summary>With intervals</summary><table class="strata"><thead><tr><th>who and what</th><th>yield, 95 % interval</th><th>verified</th></tr></thead>
    <tbody>${strata.map((one) => html`<tr><td><${Line} text=${`${one.system}: ${one.agent}`} /> <small>${one.mode ?? 'fault'}${one.side ? ` · ${one.side}` : ''} · ${plain(one.manipulator)}</small></td>
      <td><${Interval} value=${one.yield.value} low=${one.yield.low} high=${one.yield.high} /></td><td class="n">${one.verified} of ${one.attempts}</td></tr>`)}</tbody></table></details>`;
}

function Cells({ report, name, set, runs }) {
  const [cursor, setCursor] = useState(0);
  const keys = useMemo(() => new Map(runs.map((row) => [row.run, row])), [runs]);
  const filters = ['class', 'plan', 'system', 'task', 'mode', 'agent'].filter((one) => set[one]);
  const rows = report.cells.filter((cell) => matches(cell, set));
  const open = (at) => rows[at]?.run && keys.has(rows[at].run) && go(address(['run', keys.get(rows[at].run).key]));
  return html`<section><h2>Injected runs <small class="soft">${count(rows.length)} of ${count(report.cells.length)}</small></h2>
    ${filters.length > 0 && html`<p class="classes">${filters.map((one) => html`<${Tag}>${one}: ${plain(set[one])}<//> `)}<a href=${address(['campaign', name], { by: set.by })}>all</a></p>`}
    ${rows.length > 0 && html`<${List} rows=${rows} height=${44} label="Injected runs" id="cell" chosen=${Math.min(cursor, rows.length - 1)} choose=${setCursor} open=${open}
      draw=${(cell) => html`<span class="id"><${Line} text=${cell.run ?? 'not run'} /></span><span class="what"><${Line} text=${`${cell.plan} · ${cell.system} · ${cell.task}`} /></span>
        <${Tag} kind=${cell.class === 'verified' ? 'bad' : ''}>${plain(cell.class)}<//><span class="some"><${Line} text=${cell.why ?? cell.evidence} />${cell.proof && html` · ${cell.proof}`}</span>`} />`}</section>`;
}

/** Whether a run belongs to a figure; reports of earlier versions do not say whom a run aimed at. */
function matches(cell, set) {
  if (['class', 'plan', 'system', 'task'].some((name) => set[name] && cell[name] !== set[name])) return false;
  const aims = (aim) => (!set.mode || (aim.mode?.code ?? 'fault') === set.mode) && (!set.agent || aim.agent === set.agent);
  return !cell.aims?.length || cell.aims.some(aims);
}
