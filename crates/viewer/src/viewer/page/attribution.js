/**
 * What methods of attribution say of a run, side by side: which step each names, on what words, and how that stands to what
 * was proven by execution.
 */

import { html } from './vendor/preact.js';
import { isFile, useAnswer } from './source.js';
import { address } from './route.js';
import { Awaited, Command, Facts, Tag } from './part.js';
import { RunHead, named } from './run.js';
import { Mark } from './marks.js';
import { Line, Long } from './text.js';
import { usePrinted } from './list.js';
import { count, many, percent, plain } from './format.js';

/** The row that counts what several methods said; it is none of them. */
const COMBINED = 'combined';
/** How much of what a judge says is shown, in characters; all of it stands in the rows. */
const MOST = 3000;
/** How much of a name. */
const NAME = 60;
/** Steps that the table has room for. */
const COLUMNS = 12;

/** The screen; `parts` name a run, or a dataset and a sample of it. */
export function AttributionScreen({ parts }) {
  const kind = parts.length > 1 ? 'sample' : 'run';
  const name = parts.join('/');
  const answer = useAnswer(`${kind}/${name}`);
  const said = useAnswer(`${kind}/${name}/attribution`);
  const traced = useAnswer(answer.data?.trace ? `run/${name}/trace` : null);
  return html`<main class="attribution"><${Awaited} answer=${answer}>${(data) => {
    const rows = data.rows.map((cells) => named(data.columns, cells));
    const speaker = new Map(rows.map((row) => [row.step, data.agents[row.agent]]));
    return html`<${RunHead} run=${{ ...data, rows }} kind=${kind} name=${name} chosen="attribution" />
      <${Awaited} answer=${said}>${({ rows }) => html`<${Said} rows=${rows} proven=${provenOf(data.head.label, traced.data)} speaker=${speaker}
        href=${(step) => address([kind, ...parts, step])} trace=${kind === 'run' ? data.head.can?.trace : null} />`}<//>`;
  }}<//></main>`;
}

/** What is known of the run beside the methods: each source with the steps that it names. */
function provenOf(label, trace) {
  const proven = [];
  if (label) proven.push({ words: `label, ${plain(label.status)}`, sure: label.status === 'verified', steps: label.errors.map((error) => error.step ?? null) });
  const places = [trace?.earliest_flip, trace?.commitment, ...(trace?.flips ?? []), ...(trace?.coupled ?? [])].filter(Boolean);
  if (trace) proven.push({ words: 'trace, executed', sure: true, steps: [...new Set(places.map((place) => place.step))] });
  return proven;
}

function Said({ rows, proven, speaker, href, trace }) {
  const truth = proven.find((one) => one.sure && one.steps.length) ?? proven.find((one) => one.steps.length);
  return html`
    <section class="verdict"><h2>Whom they name</h2><${Verdict} rows=${rows} truth=${truth} speaker=${speaker} href=${href} />
      <${Table} rows=${rows} proven=${proven} speaker=${speaker} href=${href} />
      <p class="note"><${Mark} name="suspected" /> first choice, with the number by which the method orders its own; numbers of different methods do not compare, and none is a probability.</p>
      ${!isFile && trace?.line && !truth?.sure && html`<p class="note">A log only suggests. What settles it is an execution:</p><${Command} text=${trace.line} />`}${
      trace?.why && html`<p class="note">A log only suggests, and nothing can be executed: <${Line} text=${trace.why} /></p>`}</section>
    <section><h2>On what evidence</h2><div class="methods">${rows.map((row) => html`<${MethodCard} row=${row} truth=${truth} href=${href} />`)}</div></section>`;
}

/** The sentence that the table says at length. */
function Verdict({ rows, truth, speaker, href }) {
  const asked = rows.filter((row) => row.method !== COMBINED);
  const places = new Map();
  for (const row of asked) {
    const first = row.predictions[0];
    if (!first) continue;
    const key = first.step ?? first.agent;
    const known = places.get(key) ?? { step: first.step, agent: speaker.get(first.step) ?? first.agent, by: [], otherwise: [] };
    known.by.push(row.method);
    if (first.agent && first.agent !== known.agent) known.otherwise.push(row.method);
    places.set(key, known);
  }
  const sorted = [...places.values()].sort((a, b) => b.by.length - a.by.length);
  if (!sorted.length) return html`<p>None of ${many(asked.length, 'method')} names anybody.</p>`;
  const [most, ...others] = sorted;
  const place = (one) => html`<b><${Name} text=${one.agent ?? 'somebody'} />${one.step === null ? '' : html` at <a href=${href(one.step)}>step ${one.step}</a>`}</b>${one.otherwise.length > 0 && html` (<${Name} text=${one.otherwise.join(', ')} /> with another agent’s name)`}`;
  const alone = asked.length === 1;
  return html`<p class="lead">${alone ? 'The one method that was asked' : `${most.by.length} of ${many(asked.length, 'method')}`} ${alone || most.by.length === 1 ? 'names' : 'name'} ${place(most)}${
    others.map((one, at) => html`${at === 0 ? '; ' : ', '}<${Name} text=${one.by.join(', ')} /> ${one.by.length === 1 ? 'names' : 'name'} ${place(one)}`)}.
    ${truth && html` The ${truth.words.split(',')[0]}, ${truth.sure ? 'which rests on executions,' : `which is ${truth.words.split(', ')[1]},`} names ${truth.steps.includes(most.step) ? 'the same step' : html`${truth.steps.map((step, at) => html`${at > 0 && ', '}${step === null ? 'no step' : html`<a href=${href(step)}>step ${step}</a>`}`)} instead`}.`}</p>`;
}

/** The steps that have a column, those that somebody puts first before all others. */
function columnsOf(rows, proven) {
  const weight = new Map();
  for (const { steps } of proven) for (const step of steps) if (step !== null) weight.set(step, Infinity);
  for (const row of rows) {
    row.predictions.forEach((found, at) => {
      if (found.step !== null) weight.set(found.step, Math.max(weight.get(found.step) ?? 0, (weight.get(found.step) ?? 0) + 1 / (1 + at), at === 0 ? 1000 : 0));
    });
  }
  const all = [...weight.keys()].sort((a, b) => weight.get(b) - weight.get(a));
  return { steps: all.slice(0, COLUMNS).sort((a, b) => a - b), more: Math.max(0, all.length - COLUMNS) };
}

function Table({ rows, proven, speaker, href }) {
  const { steps, more } = columnsOf(rows, proven);
  return html`<div class="scrolls" tabindex="0" role="region" aria-label="Methods and steps"><table class="figures side">
    <thead><tr><th><span class="unseen">who says it</span></th>${steps.map((step) => html`<th scope="col"><a href=${href(step)}>step ${step}</a><small><${Name} text=${speaker.get(step) ?? ''} /></small></th>`)}</tr></thead>
    <tbody>${proven.map((one) => html`<tr class="proven"><th scope="row">${one.words}</th>${steps.map((step) => html`<td>${one.steps.includes(step) && html`<${Mark} name="labelled" /><span class="unseen">named</span>`}</td>`)}</tr>`)}
    ${rows.map((row) => html`<tr><th scope="row"><${Name} text=${row.method} />${row.model && html`<small><${Name} text=${row.model} /></small>`}</th>${row.predictions.some((found) => found.step !== null)
      ? steps.map((step) => html`<td><${Cell} row=${row} step=${step} /></td>`)
      : html`<td class="none" colspan=${Math.max(1, steps.length)}>${row.predictions.length ? html`<${Name} text=${row.predictions[0].agent} />, at no step` : html`no prediction: <${Name} text=${row.abstained?.why} />`}</td>`}</tr>`)}</tbody></table></div>
    ${more > 0 && html`<p class="note">${many(more, 'step')} that somebody names further behind ${more === 1 ? 'has' : 'have'} no column.</p>`}`;
}

function Cell({ row, step }) {
  const at = row.predictions.findIndex((found) => found.step === step);
  if (at < 0) return null;
  const { score, conflict } = row.predictions[at];
  const number = score === null ? '' : score.toFixed(2);
  return html`<span class=${at === 0 ? 'first' : 'behind'}>${at === 0 ? html`<${Mark} name="suspected" /> ` : html`<span class="unseen">choice </span>${at + 1}. `}${number}${conflict && html` <${Tag} kind="odd">conflict<//>`}</span>`;
}

/** One method at length. */
function MethodCard({ row, truth, href }) {
  const printed = usePrinted();
  const [first, ...others] = row.predictions;
  const same = truth && first && truth.steps.includes(first.step);
  const stands = truth && (first?.step ?? null) !== null && html` <${Tag} kind=${same ? 'good' : 'odd'}>${same ? 'as' : 'other than'} the ${truth.words.split(',')[0]}<//>`;
  return html`<article class="method"><h3><${Name} text=${row.method} /> ${stands}</h3>
    ${row.about && html`<p class="note"><${Told} text=${row.about} /></p>`}
    ${first ? html`<${Prediction} found=${first} href=${href} />` : html`<p><b>No prediction</b>: <${Name} text=${row.abstained?.why} /></p>${row.abstained?.said && html`<${Long} text=${row.abstained.said} />`}`}
    ${row.interval && html`<p class="note">Steps ${row.interval.first} to ${row.interval.last} hold the true one in ${percent(1 - row.interval.alpha)} of runs like the ${many(row.interval.rows, 'labelled run')} that it was calibrated on.</p>`}
    ${others.length > 0 && html`<details open=${printed}><summary>${many(others.length, 'other choice')}</summary>${others.map((found, at) => html`<div class="further"><p class="speaker">choice ${at + 2}</p><${Prediction} found=${found} href=${href} /></div>`)}</details>`}
    <${Facts} facts=${[
      ['judge', row.model && html`<${Told} text=${row.served_model && row.served_model !== row.model ? `${row.model}, served as ${row.served_model}` : judge(row.model)} most=${2 * NAME} />`],
      ['asked', row.calls ? `${many(row.calls, 'call')}, ${count(row.tokens_in)} → ${count(row.tokens_out)} tokens${row.cost === null ? '' : `, ${row.cost.toFixed(4)}`}` : row.method === COMBINED || row.model ? null : 'nobody'],
      ['votes', row.votes && `${row.votes[1]} of ${row.votes[0]} said something`],
      ['right answer', row.gold ? 'known to the judge' : null],
      ['prompts', row.compat && html`of <${Name} text=${row.compat} />`],
      ['cut to fit', row.cuts?.steps ? `${many(row.cuts.steps, 'step')}, ${count(row.cuts.characters)} characters` : null],
    ]} /></article>`;
}

/** The simulator is always named as one. */
function judge(model) {
  return model === 'simulator' ? 'simulator (a scripted model, not a language model)' : model;
}

/** What a method or a judge says: a line, of a long one the beginning. */
function Told({ text, most = MOST }) {
  return html`<${Line} text=${text.length > most ? `${text.slice(0, most)}…` : text} />`;
}

/** A name that a row gives. */
function Name({ text }) {
  return html`<${Told} text=${plain(text)} most=${NAME} />`;
}

function Prediction({ found, href }) {
  return html`<p><b><${Name} text=${found.agent ?? 'an unnamed agent'} />${found.step === null ? ', at no step' : html` at <a href=${href(found.step)}>step ${found.step}</a>`}</b>${
      found.score === null ? '' : html` <span class="soft">${found.score.toFixed(2)}</span>`}${found.failure_mode && html` <${Tag}>guesses <${Name} text=${found.failure_mode} /><//>`}</p>
    ${found.conflict && html`<p class="warning"><${Told} text=${found.conflict} /></p>`}
    ${found.reason && html`<p class="reason"><${Told} text=${found.reason} /></p>`}
    ${(found.evidence ?? []).map((one) => html`<blockquote><p><${Told} text=${one.quote} /></p><p class="speaker">step ${one.step}${one.stands ? '' : html` <${Tag} kind="bad">these words do not stand there<//>`}</p></blockquote>`)}
    ${found.fix && html`<p class="speaker">what would repair it</p><blockquote class="fix"><${Told} text=${found.fix} /></blockquote>`}`;
}
