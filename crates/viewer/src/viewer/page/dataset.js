/**
 * A dataset: what is in it, what lint found, each sample.
 */

import { html, useMemo, useState } from './vendor/preact.js';
import { useAnswer } from './source.js';
import { address, go } from './route.js';
import { Awaited, Bar, Facts, Head, Tabs, Tag } from './part.js';
import { Outcome } from './marks.js';
import { Line } from './text.js';
import { List } from './list.js';
import { count, many, plain } from './format.js';

/** The screen. */
export function DatasetScreen({ parts, set }) {
  const [name] = parts;
  const answer = useAnswer(`dataset/${name}`);
  return html`<main class="dataset"><${Awaited} answer=${answer}>${(dataset) => html`<${Shown} dataset=${dataset} name=${name} set=${set} />`}<//></main>`;
}

function Shown({ dataset, name, set }) {
  const { statistics, samples, findings } = dataset;
  const view = ['findings', 'counts'].includes(set.view) ? set.view : 'samples';
  const to = (change) => address(['dataset', name], { ...set, ...change });
  return html`
    <${Head} title=${html`<${Line} text=${name} />`} aside=${html`<${Tag} kind=${findings.length ? 'odd' : 'good'}>${findings.length ? many(findings.length, 'finding') : 'nothing found'}<//>`}>
      <${Facts} facts=${[['samples', Object.entries(statistics?.kinds ?? {}).map(([kind, number]) => `${count(number)} ${kind}`).join(', ') || count(samples.length)], ['sure', dataset.sure], ['tasks', statistics && count(statistics.tasks)]]} />
      <${Tabs} label="Views of the dataset" chosen=${view} tabs=${[['samples', `Samples ${count(samples.length)}`, to({ view: '' })], ['findings', `Findings ${count(findings.length)}`, to({ view: 'findings' })], ['counts', 'Counts', to({ view: 'counts' })]]} /><//>
    ${view === 'samples' && html`<${Samples} dataset=${dataset} name=${name} set=${set} />`}
    ${view === 'findings' && html`<${Findings} dataset=${dataset} name=${name} />`}
    ${view === 'counts' && (statistics ? html`<${Counts} statistics=${statistics} />` : html`<p class="note">It cannot be counted: see the findings.</p>`)}`;
}

/** Where a sample is shown: its recording if that is there, else the sample itself. */
export function placeOf(dataset, name, id, step = null) {
  const at = dataset.samples.findIndex((sample) => sample.id === id);
  if (at < 0) return null;
  const own = dataset.samples[at].run ? ['run', dataset.samples[at].run] : ['sample', name, String(at)];
  return address(step === null ? own : [...own, String(step)]);
}

function Samples({ dataset, name, set }) {
  const [cursor, setCursor] = useState(0);
  const rows = useMemo(() => {
    const words = (set.q ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    const numbered = dataset.samples.map((sample, at) => ({ ...sample, at }));
    return numbered.filter((row) => words.every((word) => JSON.stringify(row).toLowerCase().includes(word)) && (!set.kind || row.kind === set.kind));
  }, [dataset, set.q, set.kind]);
  const open = (at) => rows[at] && go(address(['sample', name, String(rows[at].at)]));
  return html`<form class="filter" role="search" onSubmit=${(event) => event.preventDefault()}>
      <input type="search" value=${set.q ?? ''} aria-label="Filter" placeholder="Filter: task, agent, mode…" onInput=${(event) => go(address(['dataset', name], { ...set, q: event.currentTarget.value }), { replace: true })} />
      <select aria-label="Kind" onChange=${(event) => go(address(['dataset', name], { ...set, kind: event.currentTarget.value }), { replace: true })}>
        ${['', 'clean', 'failure', 'benign'].map((one) => html`<option value=${one} selected=${one === (set.kind ?? '')}>${one || 'every kind'}</option>`)}</select></form>
    ${rows.length > 0 && html`<${List} rows=${rows} height=${44} label="Samples" id="sample" chosen=${Math.min(cursor, rows.length - 1)} choose=${setCursor} open=${open} draw=${(row) => html`
      <span class="id"><${Line} text=${row.id} /></span><${Tag}>${row.kind}<//><${Outcome} verdict=${row.outcome} />
      <span class="what"><${Line} text=${[row.system, row.task, row.split].filter(Boolean).join(' · ')} /></span>
      <span class="label"><${Line} text=${[row.errors.map((error) => `${error.mode ?? ''} ${error.agent} at step ${error.step ?? '?'}`).join('; '), row.suspected && `suspected: ${row.suspected}`].filter(Boolean).join(' · ')} /></span>`} />`}`;
}

function Findings({ dataset, name }) {
  if (!dataset.findings.length) return html`<p class="note">Lint found nothing.</p>`;
  const groups = new Map();
  for (const finding of dataset.findings) groups.set(finding.rule, [...(groups.get(finding.rule) ?? []), finding]);
  return html`${[...groups].map(([rule, findings]) => html`<section><h2>${rule} <small class="soft">${count(findings.length)}</small></h2><p class="note">${dataset.rules[rule]}</p>
    <ul class="defects">${findings.slice(0, 50).map((finding) => {
      const href = placeOf(dataset, name, finding.sample, finding.step);
      return html`<li>${href ? html`<a href=${href}><${Line} text=${finding.sample} />${finding.step === null ? '' : `, step ${finding.step}`}</a>` : html`line ${finding.line}`} <${Line} text=${finding.what} /></li>`;
    })}</ul>${findings.length > 50 && html`<p class="note">and ${count(findings.length - 50)} more: <code>aegis lint --show 0</code></p>`}</section>`)}`;
}

function Counts({ statistics }) {
  const { labels, position, lengths, twins } = statistics;
  const erring = statistics.agents.filter((agent) => agent.errors > 0).map((agent) => [`${agent.system} · ${agent.agent}`, agent.errors]);
  const tenths = position.tenth.map((number, tenth) => [`${tenth * 10}–${tenth * 10 + 10} %`, number]);
  const sections = [
    ['Samples', statistics.kinds], ['Parts', statistics.splits], ['Systems', statistics.systems], ['Backends', statistics.backends],
    ['Failure modes', labels.modes], ['Manipulators', labels.manipulators], ['Sides', labels.sides], ['Culprits', labels.culprits ?? {}], ['Missed catch', labels.missed_catch ?? {}], ['Erring agents', Object.fromEntries(erring)],
    ['Error at step', position.step], ['Error at this part of the run', labels.errors ? Object.fromEntries(tenths) : {}],
  ];
  return html`<${Facts} facts=${[
      ['steps a sample', `${lengths.steps.min} to ${lengths.steps.max}, median ${lengths.steps.median}`],
      ['characters', `${count(lengths.characters.min)} to ${count(lengths.characters.max)}, median ${count(lengths.characters.median)}`],
      ['twins', `${twins.clean} clean; ${twins.paired} failures paired, ${twins.unpaired} not; median ${twins.failures_per_clean.median} failures a clean run`],
      ['errors at their agent’s first call', `${count(position.first_call)} of ${count(labels.errors)}`],
      ['evenness of modes', labels.mode_evenness === null ? null : `${labels.mode_evenness.toFixed(2)} of 1`],
      ['modes missing', labels.modes_missing.join(', ')],
    ]} />
    <div class="charts">${sections.filter(([, counts]) => Object.keys(counts).length > 0).map(([title, counts]) => html`<section><h2>${title}</h2><${Chart} counts=${counts} /></section>`)}
    ${statistics.probe.length > 0 && html`<section><h2>Do injections give themselves away?</h2><p class="note">Area under the curve of a shallow classifier: 0.5 is chance.</p><ul class="chart">${statistics.probe.map((one) => html`<li><span>${plain(one.manipulator)}</span>
      <${Bar} value=${one.auc ?? 0} most=${1} kind=${one.auc >= 0.8 ? 'odd' : ''} /><b>${one.auc === null ? 'too few' : one.auc.toFixed(2)}</b>${one.interval && html`<small>${one.interval[0].toFixed(2)} to ${one.interval[1].toFixed(2)}${one.tells.length > 0 && html`, by <${Line} text=${one.tells.join(', ')} />`}</small>`}</li>`)}</ul></section>`}</div>`;
}

function Chart({ counts }) {
  const rows = Object.entries(counts);
  const most = Math.max(...rows.map(([, number]) => number));
  return html`<ul class="chart">${rows.slice(0, 30).map(([name, number]) => html`<li><span><${Line} text=${plain(name)} /></span><${Bar} value=${number} most=${most} /><b>${count(number)}</b></li>`)}</ul>`;
}
