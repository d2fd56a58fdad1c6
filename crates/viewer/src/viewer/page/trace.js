/**
 * What a trace found: for each step how the run ends with its recorded reply and with another, and what that amounts to.
 */

import { html } from './vendor/preact.js';
import { useAnswer } from './source.js';
import { address } from './route.js';
import { Awaited, Command, Facts, Interval, Tag } from './part.js';
import { RunHead, named } from './run.js';
import { Line, Long } from './text.js';
import { arm, count, numbered, percent, plain } from './format.js';

/** What a step is said to be, by where it stands. */
const STANDS = {
  shown: ['flips the outcome', 'bad'],
  same: ['cleared: as in the twin', 'good'],
  excluded: ['cleared: no such effect', 'good'],
  untouched: ['not tested', 'faint'],
  void: ['void: too many executions say nothing', 'odd'],
  open: ['not sure', 'odd'],
  unsettled: ['not sure: as many executions as may be made', 'odd'],
};

/** What e-values are shared by: before format 3 they were written as they were before the claims of the run shared them, as its label has them. */
const sharedBy = (trace) => (trace.format < 3 ? Math.max(trace.claims ?? 1, 1) : 1);

/** The screen. */
export function Trace({ parts }) {
  const [run] = parts;
  const answer = useAnswer(`run/${run}`);
  const traced = useAnswer(`run/${run}/trace`);
  return html`<main class="trace"><${Awaited} answer=${answer}>${(data) => html`
    <${RunHead} run=${{ ...data, rows: data.rows.map((cells) => named(data.columns, cells)) }} kind="run" name=${run} chosen="trace" />
    <${Awaited} answer=${traced}>${(trace) => html`<${Found} trace=${trace} run=${run} again=${data.head.can?.trace?.line} />`}<//>`}<//></main>`;
}

function Found({ trace, run, again }) {
  const place = (decisive) => decisive && html`<a href=${address(['run', run, decisive.step])}>step ${decisive.step}</a> by <${Line} text=${numbered(decisive)} />`;
  return html`
    <section class="verdict"><h2>What was found</h2>
      <${Lead} trace=${trace} place=${place} />
      <${Facts} facts=${[
        ['earliest flip', place(trace.earliest_flip)],
        ['commitment', place(trace.commitment)],
        ['flips', !trace.earliest_flip && trace.flips?.length ? trace.flips.map((one, at) => html`${at > 0 && ', '}${place(one)}`) : ''],
        ['together', trace.coupled?.length ? trace.coupled.map((one, at) => html`${at > 0 && ' and '}${place(one)}`) : ''],
        ['nothing', trace.not_found],
        ['as recorded', arm(trace.sanity)],
        ['shown at', `e ${count(Math.round(trace.target / sharedBy(trace)))}: at most ${percent(trace.alpha)} to name any step without effect`],
        ['spent', trace.spent && Object.entries(trace.spent).filter(([, value]) => typeof value === 'number').map(([name, value]) => `${count(value)} ${plain(name)}`).join(', ')],
      ]} />
      ${trace.unrunnable_check && html`<p class="warning">The check could not be run: <${Line} text=${trace.unrunnable_check} /></p>`}
      ${trace.out_of_budget && html`<p class="warning">The budget ended the search.</p>`}
    </section>
    ${trace.doubts?.length > 0 && html`<section><h2>Doubts</h2>${trace.doubts.map((doubt) => html`<p class="warning"><b>${plain(doubt.rule)}</b>${doubt.shown === null ? '' : `, step ${doubt.shown}`}: <${Line} text=${doubt.why} /></p>`)}
      ${again && html`<${Command} text=${again} />`}</section>`}
    <section><h2>Step by step</h2>
      <p class="note">The bar is the difference that the other reply makes to the share of executions that pass, with its 95 % interval. It describes; the verdict rests on e.</p>
      <p class="axis" aria-hidden="true"><span>−100 %</span><span>0</span><span>+100 %</span></p>
      <ol class="findings">${trace.steps.map((finding) => html`<${Finding} finding=${finding} run=${run} by=${sharedBy(trace)} />`)}</ol></section>
    ${trace.couples?.length > 0 && html`<section><h2>Tried together</h2><ol class="findings">${trace.couples.map((couple) => html`<li><p>steps ${couple.steps.join(' and ')}: with neither ${arm(couple.executed.null)}, with both ${arm(couple.executed.treated)}</p></li>`)}</ol></section>`}`;
}

/** What was found, in a sentence. */
function Lead({ trace, place }) {
  const first = trace.earliest_flip;
  if (!first) return null;
  const executed = trace.steps.find((one) => one.step === first.step)?.executed;
  const last = trace.commitment;
  return html`<p class="lead">With another reply at <b>${place(first)}</b> the run does not fail${executed ? html`: ${arm(executed.treated)}, and as it was recorded ${arm(executed.null)}` : ''}.${
    last && last.step !== first.step && html` The last step of which this holds is ${place(last)}: after it the failure stands.`}</p>`;
}

function Finding({ finding, run, by }) {
  const [words, kind] = STANDS[finding.stands] ?? [plain(finding.stands), ''];
  const { executed } = finding;
  return html`<li class="finding ${kind}">
    <div class="line"><a href=${address(['run', run, finding.step])} aria-label="Step ${finding.step}"><span class="number">${finding.step}</span></a>
      <span class="who"><${Line} text=${numbered(finding)} /></span>
      ${finding.interval ? html`<${Interval} value=${finding.effect} low=${finding.interval.low} high=${finding.interval.high} from=${-1} to=${1} kind=${kind} />` : html`<span class="interval"></span>`}
      <${Tag} kind=${kind}>${words}<//></div>
    ${executed && html`<p class="arms">as recorded ${arm(executed.null)}; with the other reply ${arm(executed.treated)}${executed.e ? `; e ${count(Math.round(executed.e / by))} of ${count(Math.round(executed.target / by))} in ${executed.pairs} pairs` : ''}</p>`}
    ${finding.note && html`<p class="note"><${Line} text=${finding.note} /></p>`}
    <details><summary>${finding.instead ? 'The words' : 'What it said'}</summary>
      <div class="apart"><div><p class="speaker">said</p><${Long} text=${finding.said} /></div>
      ${finding.instead && html`<div><p class="speaker">instead, from ${plain(finding.source)}: <${Line} text=${finding.reason} /></p><${Long} text=${finding.instead} /></div>`}</div>
      ${finding.null_runs.length + finding.treated_runs.length > 0 && html`<p class="note">executions: ${[...finding.null_runs, ...finding.treated_runs].map((one) => html`<a href=${address(['run', one])}>${one}</a> `)}</p>`}
    </details></li>`;
}
