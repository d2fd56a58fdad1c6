/**
 * Where a campaign's yield lies: sums that meet in a matrix, shares with their intervals, the balance of failure modes.
 * Each figure leads to the runs that it counts.
 */

import { html, useMemo } from './vendor/preact.js';
import { Bar, Interval } from './part.js';
import { Line } from './text.js';
import { usePrinted } from './list.js';
import { count, percent, plain } from './format.js';

/** A share of fewer attempts is drawn hatched: it says little. */
const FEW = 5;
/** Rows of shares that are shown without being asked for. */
const SHOWN = 12;
/** Classes of runs that flipped: of others the report does not say whether altered bytes were delivered. */
const FLIPPED = ['verified', 'unproven', 'void', 'flaky_task'];

/** Sums of a matrix: `rows`, `columns`, and what stands where they meet, with what the address sets to see its runs. */
export function matrixOf(report, by) {
  const cells = new Map();
  const columns = new Map();
  const add = (row, system, name, sums, set) => {
    const column = `${system}: ${name}`;
    columns.set(column, true);
    const key = JSON.stringify([row, column]);
    const cell = cells.get(key) ?? { row, column, set, attempts: 0, flipped: 0, shown: 0, ...(sums.delivered !== undefined && { delivered: 0 }) };
    for (const sum of Object.keys(sums)) cell[sum] += sums[sum];
    cells.set(key, cell);
  };
  if (by === 'mode') {
    for (const { system, agent, mode, planted, delivered, flipped, necessary } of report.strata) {
      add(mode ?? 'fault', system, agent, { attempts: planted, delivered, flipped, shown: necessary }, { system, agent, mode: mode ?? 'fault' });
    }
  } else {
    for (const { system, task, plan, class: kind } of report.cells) {
      add(plan, system, task, { attempts: 1, flipped: FLIPPED.includes(kind) ? 1 : 0, shown: kind === 'verified' ? 1 : 0 }, { system, plan, task });
    }
  }
  const rows = [...new Set([...cells.values()].map((cell) => cell.row))].sort();
  return { rows, columns: [...columns.keys()].sort(), cell: (row, column) => cells.get(JSON.stringify([row, column])) };
}

/** The matrix; `link(set)` is the address of the runs of a cell. */
export function Matrix({ report, by, link }) {
  const names = new Map(report.modes.map((one) => [one.mode, one.name]));
  const shown = by === 'mode' ? 'necessary' : 'verified';
  const matrix = useMemo(() => matrixOf(report, by), [report, by]);
  return html`<div class="scrolls" tabindex="0" role="region" aria-label="Matrix"><table class="matrix">
    <thead><tr><td></td>${matrix.columns.map((column) => html`<th scope="col"><span><${Line} text=${column} /></span></th>`)}</tr></thead>
    <tbody>${matrix.rows.map((row) => html`<tr><th scope="row"><${Line} text=${row} />${by === 'mode' && names.has(row) && html` <small><${Line} text=${names.get(row)} /></small>`}</th>${matrix.columns.map((column) => {
      const cell = matrix.cell(row, column);
      if (!cell) return html`<td class="none"><span class="unseen">none</span></td>`;
      const share = cell.attempts ? cell.shown / cell.attempts : 0;
      const words = `${cell.shown} ${shown}, ${cell.flipped} flipped${cell.delivered === undefined ? '' : `, ${cell.delivered} delivered`} of ${cell.attempts}`;
      return html`<td class=${cell.attempts < FEW ? 'few' : ''} style=${{ '--share': share.toFixed(2) }}><a href=${link(cell.set)} title=${words}>${cell.shown}<small>/${cell.attempts}</small><span class="unseen"> <${Line} text=${`${row}, ${column}: ${words}`} /></span></a></td>`;
    })}</tr>`)}</tbody></table></div>
    <p class="note">${by === 'mode' ? 'Errors that a proven failure needs, of those that were planted' : 'Verified of attempts'}; the stronger the colour, the greater the share; hatched where fewer than ${FEW} were tried.${
      by === 'plan' && report.more_cells > 0 && html` Of the first ${count(report.cells.length)} runs: ${count(report.more_cells)} more are in report.json.`}</p>`;
}

/** Necessary of planted per system, agent, mode, side and manipulator. */
export function Strata({ strata, link }) {
  const printed = usePrinted();
  return html`<details open=${printed || strata.length <= SHOWN}><summary>With intervals</summary>
    <div class="scrolls" tabindex="0" role="region" aria-label="Yield with intervals"><table class="figures"><thead><tr><th>who and what</th><th>yield, Wilson’s 95 % interval</th>
      ${['planted', 'delivered', 'flipped', 'necessary'].map((title) => html`<th class="n">${title}</th>`)}</tr></thead>
    <tbody>${strata.map((one) => html`<tr><td><a href=${link({ system: one.system, agent: one.agent, mode: one.mode ?? 'fault', operator: one.manipulator })}><${Line} text=${`${one.system}: ${one.agent}`} /></a> <small><${Line} text=${[one.mode ?? 'fault', one.side, plain(one.manipulator)].filter(Boolean).join(' · ')} /></small></td>
      <td class="share"><${Interval} value=${one.yield.value} low=${one.yield.low} high=${one.yield.high} /> <span>${percent(one.yield.value)} <small>(${Math.round(100 * one.yield.low)} to ${Math.round(100 * one.yield.high)})</small></span></td>
      ${[one.planted, one.delivered, one.flipped, one.necessary].map((number) => html`<td class="n">${count(number)}</td>`)}</tr>`)}</tbody></table></div></details>`;
}

/** All failure modes, hit or not. */
export function Modes({ modes, link }) {
  const most = Math.max(...modes.map((one) => one.necessary));
  return html`<section><h2>Balance of failure modes</h2><p class="note">Errors of each of the ${modes.length} modes that a proven failure needs, of those that were planted.</p>
    <ul class="chart modes">${modes.map((one) => html`<li><span>${one.planted > 0 ? html`<a href=${link({ mode: one.mode })}><${Line} text=${one.mode} /></a>` : html`<${Line} text=${one.mode} />`} <${Line} text=${one.name} /></span><${Bar} value=${one.necessary} most=${most} /><b>${count(one.necessary)} of ${count(one.planted)}</b></li>`)}</ul></section>`;
}
