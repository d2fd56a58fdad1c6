/**
 * A campaign: from attempts to proof, where the yield lies, what it cost, and every injected run behind each figure. It is
 * what `report.html` opens.
 */

import { html } from './vendor/preact.js';
import { useAnswer } from './source.js';
import { address } from './route.js';
import { Awaited, Bar, Facts, Head, LeftOut, Tabs, Tag } from './part.js';
import { Line } from './text.js';
import { Matrix, Modes, Strata } from './matrix.js';
import { Cells } from './cells.js';
import { count, duration, many, percent, plain } from './format.js';

/** The screen. */
export function CampaignScreen({ parts, set }) {
  const [name] = parts;
  const answer = useAnswer(`campaign/${name}`);
  const tree = useAnswer('tree');
  return html`<main class="campaign"><${Awaited} answer=${answer}>${(report) => html`<${Shown} report=${report} name=${name} set=${set} runs=${tree.data?.runs ?? []} leftOut=${tree.data?.left_out} />`}<//></main>`;
}

/** The simulator is always named as one. */
function backend(name) {
  return name === 'simulator' ? 'simulator (a scripted model, not a language model)' : name;
}

function Shown({ report, name, set, runs, leftOut }) {
  const { funnel, clean, cost } = report;
  const steps = [['attempts', funnel.attempts], ['delivered', funnel.delivered], ['outcome flipped', funnel.flipped], ['verified', funnel.verified]];
  const by = set.by === 'plan' ? 'plan' : 'mode';
  const link = (more) => address(['campaign', name], { by: set.by, ...more });
  return html`
    <${Head} title=${html`<${Line} text=${report.campaign} />`} aside=${html`<${Tag} kind=${report.complete ? '' : 'odd'}>${report.complete ? 'complete' : 'not complete'}<//>`}>
      <${Facts} facts=${[
        ['backend', html`<${Line} text=${backend(report.backend)} />`], ['seed', report.seed], ['taxonomy', html`<${Line} text=${report.taxonomy} />`], ['last start took', duration(1000 * report.seconds)],
        ['clean runs', `${count(clean.passed)} of ${count(clean.runs)} passed; ${count(clean.kept)} of ${count(clean.tasks)} tasks were gone on with`],
        ['spent', `${count(cost.spent.calls)} calls; records answered ${percent(cost.saved_share)} of all tokens`],
      ]} />
      ${!report.complete && html`<p class="warning">Some cells are not finished. Go on with <code>--resume</code>.</p>`}
      <${LeftOut} number=${leftOut} /><//>
    <section><h2>Where the yield lies</h2>
      <${Tabs} label="Matrix" chosen=${by} tabs=${[['mode', 'Mode × agent', link({ ...set, by: '' })], ['plan', 'Plan × task', link({ ...set, by: 'plan' })]]} />
      <${Matrix} report=${report} by=${by} link=${link} />
      ${by === 'mode' && html`<${Strata} strata=${report.strata} link=${link} />`}</section>
    <section><h2>From attempts to proof</h2>
      <ol class="funnel">${steps.map(([words, number]) => html`<li><span>${words}</span><${Bar} value=${number} most=${funnel.attempts} /><b>${count(number)}</b></li>`)}</ol>
      ${report.verified_failures !== undefined && html`<p class="note">${many(report.verified_failures, 'failure')} ${report.verified_failures === 1 ? 'is' : 'are'} verified: runs that met the same edit count once.</p>`}
      <p class="classes">${Object.entries(report.classes).map(([word, number]) => html`<a href=${link({ ...set, class: word })}><${Tag}><${Line} text=${plain(word)} /> ${count(number)}<//></a> `)}</p>
      <p class="note">Each injected run is in one class; only verified ones are labelled.</p>
      ${report.decoys && html`<p class="note">Neutral changes were planted as if they were errors, and proven in the same way: <a href=${link({ decoy: 'yes' })}>${count(report.decoys.verified)} of ${many(report.decoys.planted, 'decoy')} verified</a>, which leaves at most ${percent(report.decoys.at_most)} of such labels possible (95 %).</p>`}
      ${clean.chaotic > 0 && html`<p class="note">${many(clean.chaotic, 'task')} ${clean.chaotic === 1 ? 'is' : 'are'} chaotic: neutral changes alone turn the outcome too often, and no label is made there.</p>`}</section>
    <${Cells} report=${report} set=${set} runs=${runs} link=${link} />
    <${Modes} modes=${report.modes} link=${link} />
    <${Cost} cost=${cost} />
    <${Unmade} unmade=${report.unmade} rewriting=${report.rewriting} />
    ${report.tasks.length > 0 && html`<${Tasks} tasks=${report.tasks} />`}`;
}

/** A table of figures; titles that start with `#` are of numbers. */
function Figures({ label, titles, rows }) {
  const kinds = titles.map((title) => (title.startsWith('#') ? 'n' : ''));
  return html`<div class="scrolls" tabindex="0" role="region" aria-label=${label}><table class="figures"><thead><tr>${titles.map((title, at) => html`<th class=${kinds[at]}>${title.replace('#', '') || html`<span class="unseen">what</span>`}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((value, at) => html`<td class=${kinds[at]}>${kinds[at] ? value : html`<${Line} text=${value} />`}</td>`)}</tr>`)}</tbody></table></div>`;
}

function Cost({ cost }) {
  const tenth = (number) => count(Math.round(10 * number) / 10);
  const line = (what, expense) => [what, tenth(expense.calls), tenth(expense.input_tokens), tenth(expense.output_tokens), expense.money === null ? 'unknown' : expense.money.toFixed(6)];
  const rows = [line('spent', cost.spent), line('of it by finished cells', cost.by_cells)];
  if (cost.per_verified) rows.push(line('for each verified failure', cost.per_verified));
  rows.push(line('answered by records of clean runs', cost.saved_by_prefix));
  return html`<section><h2>Cost</h2><p class="note">Records of clean runs answered ${percent(cost.saved_share)} of all tokens.${
      cost.salvaged_calls > 0 && ` ${many(cost.salvaged_calls, 'call')} of interrupted runs were not paid for again.`}${
      cost.unreported > 0 && ` ${count(cost.unreported)} replies told no tokens: they are counted at their bound.`}</p>
    <${Figures} label="Cost" titles=${['', '#calls', '#input tokens', '#output tokens', '#money']} rows=${rows} /></section>`;
}

function Unmade({ unmade, rewriting }) {
  const asked = rewriting?.asked > 0;
  if (!asked && !unmade.length) return null;
  return html`<section><h2>Edits that could not be made</h2>
    ${asked && html`<p class="note">A model was asked ${many(rewriting.asked, 'question')} for edits: ${count(rewriting.used)} answers were used, ${count(rewriting.refused)} refused, ${count(rewriting.unanswered)} never came.</p>`}
    ${unmade.length > 0 && html`<p class="note">Their steps passed untouched, and their runs have no label.</p>
      <${Figures} label="Edits that could not be made" titles=${['manipulator', 'why', '#runs']} rows=${unmade.map((one) => [plain(one.manipulator), one.why, count(one.runs)])} />`}</section>`;
}

function Tasks({ tasks }) {
  const rows = tasks.map((one) => [one.system, one.task, one.left_out ? plain(one.left_out) : '–', one.why ?? '', one.repeatable ? 'yes' : 'no', one.chaotic ? 'yes' : 'no', one.learned?.join('; ') ?? '', `${count(one.clean.passed)} of ${count(one.clean.of)}`]);
  return html`<section><h2>Tasks out of the ordinary</h2><p class="note">Left out, asked something else after the same replies, chaotic, or with clean runs that differ in what counts as equal.</p>
    <${Figures} label="Tasks out of the ordinary" titles=${['system', 'task', 'left out', 'why', 'repeatable', 'chaotic', 'differs between runs', '#clean runs passed']} rows=${rows} /></section>`;
}
