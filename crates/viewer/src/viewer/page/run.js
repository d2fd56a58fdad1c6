/**
 * One run: lanes, its steps, the step that is looked at.
 */

import { html, useEffect, useMemo, useRef, useState } from './vendor/preact.js';
import { get, follow, isFile, useAnswer } from './source.js';
import { address, go } from './route.js';
import { useKeys } from './keys.js';
import { Awaited, Facts, Head, Tabs, Tag } from './part.js';
import { Lanes, zoomed } from './lanes.js';
import { Legend, Marks, Outcome, describe } from './marks.js';
import { Line } from './text.js';
import { List } from './list.js';
import { Step } from './step.js';
import { Annotate, Annotations } from './annotate.js';
import { ModeQuestions } from './modes.js';
import { accountWords, count, duration, many, numbered, plain, when } from './format.js';

/** A row as the server cuts it, with names. */
export function named(columns, cells) {
  return Object.fromEntries(columns.map((name, at) => [name, cells[at]]));
}

/** The row with the marks of what methods suspect and of what rules saw. */
function noticed(row, suspects, signs) {
  const marks = [suspects?.[row.step] && 'suspected', signs.has(row.step) && 'watched'].filter(Boolean);
  return marks.length ? { ...row, marks: [...row.marks, ...marks] } : row;
}

/** A planted error's mode, and how far it is established that the error is of it; a plan's word where nobody looked. */
function modeWords({ failure_mode: mode, mode: code, mode_claim: claim }) {
  if (!mode) return code ? `mode ${code}` : '';
  const by = claim?.by ? ` by ${claim.by}` : '';
  return `mode ${mode.code} ${mode.name} ${claim?.state ?? 'declared'}${by}`;
}

/** Who erred: an agent by its name, a tool or a peer with what it is. */
function culprit(error) {
  const kind = { 'mcp/': 'the tool', 'a2a/': 'the peer' }[error.agent.slice(0, 4)];
  return kind ? `${kind} ${error.agent}` : numbered(error);
}

/** What a label says, in a line. */
export function labelWords(label) {
  if (!label) return null;
  const modes = new Map();
  for (const error of label.errors) {
    // Earlier versions wrote what showed a natural error as its operator.
    const natural = error.shown_by || error.operator === 'counterfactual';
    const found = error.found ?? (error.origin === 'inherited' ? 'inherited error' : natural && 'natural error');
    const mode = found ? `${found}, shown by a counterfactual` : modeWords(error);
    const who = culprit(error);
    modes.set(mode, [...(modes.get(mode) ?? []), error.step === undefined || error.step === null ? who : `${who} at step ${error.step}`]);
  }
  const errors = [...modes].map(([mode, places]) => [places.join(', '), mode].filter(Boolean).join(' · '));
  const open = label.not_shown?.length ?? 0;
  const nobody = label.nobody ?? (open > 0 && `of ${open + (label.others?.length ?? 0)} planted errors none is shown to be needed`);
  if (errors.length === 0 && nobody) errors.push(nobody);
  const missed = (label.missed_catch ?? []).filter((found) => found.state === 'missed');
  if (missed.length) errors.push(`missed by ${missed.map((found) => `${found.agent} at step ${found.step}`).join(', ')}`);
  return html`<${Tag} kind=${label.status === 'verified' ? 'bad' : ''}>${plain(label.status)}<//> <${Line} text=${errors.join('; ')} />`;
}

/** The run at `base`, kept up to date while it is written. */
function useRun(base, live) {
  const answer = useAnswer(base);
  const [news, setNews] = useState(null);
  useEffect(() => setNews(null), [base]);
  useEffect(() => {
    if (!answer.data || !live || answer.data.head.sealed) return undefined;
    return follow(base.replace('run/', ''), (event) => setNews((before) => merged(before, event)));
  }, [answer.data, live, base]);
  return useMemo(() => {
    if (!answer.data) return answer;
    const data = news ? { ...answer.data, head: news.head, agents: news.agents } : answer.data;
    const rows = new Map(answer.data.rows.map((cells) => [cells[0], cells]));
    for (const [step, cells] of news?.rows ?? []) rows.set(step, cells);
    const signs = new Set((data.head.watched ?? []).map((sign) => sign.step));
    const cut = [...rows.values()].map((cells) => noticed(named(answer.data.columns, cells), data.suspects, signs)).sort((a, b) => a.step - b.step);
    return { data: { ...data, rows: cut } };
  }, [answer, news]);
}

function merged(before, event) {
  const rows = new Map(before?.rows ?? []);
  for (const cells of event.rows) {
    rows.set(cells[0], cells);
  }
  return { head: event.head, agents: event.agents, rows };
}

/** `parts` of the address behind `run` or `sample`. */
export function Run({ kind, parts, set }) {
  const deep = kind === 'sample' ? 2 : 1;
  const name = parts.slice(0, deep).join('/');
  const base = `${kind}/${name}`;
  const answer = useRun(base, kind === 'run');
  const awaited = kind === 'run' && !answer.data && !answer.error;
  const tree = useAnswer(awaited ? 'tree' : null);
  const row = awaited && tree.data?.runs.find((one) => one.key === name);
  if (row) return html`<${Foretold} row=${row} />`;
  return html`<${Awaited} answer=${answer}>${(run) => html`<${Shown} key=${base} run=${run} kind=${kind} name=${name} base=${base}
    step=${parts[deep] === undefined ? null : Number(parts[deep])} set=${set} />`}<//>`;
}

/** What the list tells of a run, until its steps are read: that takes its time where there are thousands. */
function Foretold({ row }) {
  return html`<main class="run"><${Head} title=${html`<${Line} text=${row.run} />`} aside=${html`<${Outcome} verdict=${row.outcome} />`}>
      ${row.task && html`<p class="task"><${Line} text=${row.task} /></p>`}
      <${Facts} facts=${[
        ['outcome', row.evidence && html`<${Line} text=${row.evidence} />`],
        ['label', labelWords(row.label)],
        ['refused', row.label?.refused && html`the label does not hold: <${Line} text=${row.label.refused} />`],
        ['trace', row.trace],
        ['suspected', row.suspected && html`<${Line} text=${row.suspected} />`],
        ['agents', row.agents.length > 0 && html`<${Line} text=${row.agents.join(', ')} />`],
        ['began', when(row.started)],
      ].filter(([, value]) => value)} /><//>
    <p class="wait" role="status">Reading ${row.calls ? many(row.calls, 'step') : 'the steps'}…</p></main>`;
}

/** The steps whose texts hold some words, each with the text around them; null where none are sought, or not yet found. */
function useSought(base, words, kind, rows) {
  const [typed, setTyped] = useState(words);
  useEffect(() => {
    // Asked when the hand rests.
    const rested = setTimeout(() => setTyped(words), 250);
    return () => clearTimeout(rested);
  }, [words]);
  const here = kind !== 'run' || isFile;
  const asked = typed.trim();
  const answer = useAnswer(!here && asked ? `${base}/search/${encodeURIComponent(asked)}` : null);
  return useMemo(() => {
    if (!asked) return null;
    if (here) return new Map(rows.filter((row) => row.words.toLowerCase().includes(asked.toLowerCase())).map((row) => [row.step, row.words]));
    return answer.data ? new Map(answer.data.steps.map((one) => [one.step, one.text])) : null;
  }, [asked, here, rows, answer.data]);
}

/** The step that is shown where none is asked for: what was planted, else what is blamed, else the first. */
function first(rows) {
  return (rows.find((row) => row.marks.includes('injected')) ?? rows.find((row) => row.marks.length) ?? rows[0])?.step ?? null;
}

function Shown({ run, kind, name, base, step, set }) {
  const { rows, head } = run;
  const opened = useRef(first(rows));
  const [zoom, setZoom] = useState(null);
  const byTime = set.by === 'time';
  const chosen = step ?? opened.current ?? first(rows);
  const agent = set.agent ?? '';
  const sought = useSought(base, set.q ?? '', kind, rows);
  const shown = useMemo(
    () => rows.filter((row) => !agent || run.agents[row.agent] === agent).filter((row) => !sought || sought.has(row.step)),
    [rows, agent, sought],
  );
  const filter = useRef(null);
  const at = shown.findIndex((row) => row.step === chosen);
  const told = useAnswer(chosen === null ? null : `${base}/texts/${chosen}`);
  const to = (number, change = {}) => address([kind, ...name.split('/'), String(number)], { ...set, ...change });
  const choose = (number) => go(to(number), { replace: true });
  const move = (by) => shown.length && choose(shown[Math.min(shown.length - 1, Math.max(0, at + by))].step);
  const mark = (by) => {
    const marked = shown.filter((row) => row.marks.length || row.state === 'error');
    const next = by > 0 ? marked.find((row) => row.step > chosen) : marked.findLast((row) => row.step < chosen);
    if (next) choose(next.step);
  };
  const end = rows.reduce((most, row) => Math.max(most, byTime ? (row.at ?? 0) + (row.ms ?? 0) : row.step + 1), 1);
  const look = (by) => setZoom(zoomed(zoom ?? [0, end], by, byTime ? (rows[chosen]?.at ?? 0) : chosen, end));
  useKeys({
    '/': () => filter.current?.focus(),
    j: () => move(1), k: () => move(-1), n: () => mark(1), p: () => mark(-1), G: () => move(rows.length), g: () => move(-rows.length),
    t: () => (setZoom(null), go(to(chosen, { by: byTime ? '' : 'time' }), { replace: true })), '+': () => look(0.5), '-': () => look(2),
  });
  useEffect(() => {
    for (const next of [at + 1, at - 1]) if (shown[next]) get(`${base}/texts/${shown[next].step}`).catch(() => {});
  }, [at, base]);
  return html`<main class="run">
    <${RunHead} run=${run} kind=${kind} name=${name} chosen="steps" />
    <div class="picture">
      <${Lanes} rows=${rows} agents=${run.agents} introduced=${run.introduced} byTime=${byTime} chosen=${chosen} choose=${choose} quoted=${told.data?.quoted.steps ?? []} zoom=${zoom} setZoom=${setZoom} />
      <div class="under"><${Legend} rows=${rows} />
        <span class="controls">
          <input type="search" ref=${filter} value=${set.q ?? ''} placeholder="Search the texts" aria-label="Search the texts of the run" onInput=${(event) => go(to(chosen, { q: event.currentTarget.value }), { replace: true })} />
          ${set.q && html`<span role="status" class="soft">${sought ? many(shown.length, 'step') : 'Reading…'}</span>`}
          <button class="quiet" aria-pressed=${byTime} onClick=${() => (setZoom(null), go(to(chosen, { by: byTime ? '' : 'time' }), { replace: true }))}>over time</button>
          <button class="quiet" onClick=${() => look(0.5)} aria-label="Closer">+</button><button class="quiet" onClick=${() => look(2)} aria-label="Farther">−</button>
          <label>Agent <select onChange=${(event) => go(to(chosen, { agent: event.currentTarget.value }), { replace: true })}>
            <option value="">all</option>${run.agents.map((one) => html`<option value=${one} selected=${one === agent}>${one}</option>`)}</select></label>
        </span></div>
    </div>
    ${run.mode_questions && html`<${ModeQuestions} run=${run} name=${name} href=${(number) => to(number)} />`}
    ${run.annotator && !run.mode_questions && chosen !== null && html`<${Annotate} run=${run} name=${name} chosen=${chosen} href=${(number) => to(number)} />`}
    <${Annotations} said=${run.annotations} href=${(number) => to(number)} />
    <div class="columns">
      <${List} rows=${shown} height=${46} label="Steps" id="step" chosen=${at} choose=${(index) => choose(shown[index].step)}
        draw=${(row) => html`<${StepRow} row=${row} agent=${run.agents[row.agent]} introduced=${introduced(run, row.agent)} found=${sought?.get(row.step)} />`} follow=${!head.sealed && step === null} />
      ${chosen === null ? html`<p class="note">The run has no steps yet.</p>` : html`<${Step} base=${base} step=${chosen} tab=${set.tab} signs=${(head.watched ?? []).filter((sign) => sign.step === chosen)} questions=${(head.manipulator_questions ?? []).filter((one) => one.step === chosen)}
        href=${(number, tab = '') => to(number, { tab })} twin=${kind === 'run' && (run.twin || run.like) ? address(['diff', run.twin ?? run.like, name]) : null}
        introduced=${introduced(run, rows.find((row) => row.step === chosen)?.agent)} />`}
    </div></main>`;
}

/** How an agent that nothing named is told from others: by how its prompt begins. */
function introduced(run, agent) {
  return run.introduced?.[agent]?.replace(/^You are (?:an? |the )?/i, '') ?? '';
}

function StepRow({ row, agent, introduced, found }) {
  const facts = [row.ms === null ? null : duration(row.ms), row.in === null ? null : `${count(row.in)} → ${count(row.out)}`, row.attempts > 1 ? many(row.attempts, 'try').replace('trys', 'tries') : null];
  return html`<span class="number">${row.step}</span><${Marks} row=${row} /><span class="who"><${Line} text=${agent} />${introduced && html` <small><${Line} text=${introduced} /></small>`}</span>
    <span class="some">${facts.filter(Boolean).join(' · ')}</span><span class="words"><${Line} text=${found || row.words || plain(row.state)} /></span><span class="unseen">${describe(row)}</span>`;
}

/** The head of every screen of a run. */
export function RunHead({ run, kind, name, chosen, beside }) {
  const { head } = run;
  const fork = !run.fork ? null : `a record answered ${run.fork === 1 ? 'step 0' : `steps 0 to ${run.fork - 1}`}`;
  const tabs = [['steps', 'Steps', address([kind, ...name.split('/')])]];
  const attributed = [];
  if (run.suspected) attributed.push(['attribution', 'Attribution', address(['attribution', ...name.split('/')])]);
  if (kind === 'run') {
    if (run.like) tabs.push(['twin', 'Beside a run like it', address(['diff', run.like, name])]);
    if (run.twin) tabs.push(['twin', 'Beside its twin', address(['diff', run.twin, name])]);
    if (run.trace) tabs.push(['trace', 'Trace', address(['trace', name])]);
    tabs.push(...attributed);
    if (!isFile && !run.annotator) tabs.push(['compare', 'Compare…', address(['compare', name])]);
  } else {
    tabs.push(...attributed);
  }
  const notes = [...(run.annotations_unreadable ? [`annotations cannot be read: ${run.annotations_unreadable}`] : []), ...(head.notes ?? []), ...(head.manipulator_failures ?? []).map((one) => `step ${one.step}: ${one.operator} could not edit: ${one.why}`)];
  return html`<${Head} title=${html`<${Line} text=${head.run} />`} trail=${beside} aside=${html`<${Outcome} verdict=${head.outcome.verdict} />${!head.sealed && html` <${Tag} kind="live">${isFile ? 'not sealed' : 'being written'}<//>`}`}>
    ${head.task && html`<p class="task"><${Line} text=${head.task} /></p>`}
    <${Facts} facts=${[
      ['outcome', head.outcome.evidence && html`<${Line} text=${head.outcome.evidence} />`],
      ['later', head.later?.length > 0 && html`<${Line} text=${head.later.join('; ')} />`],
      ['label', head.label ? labelWords(head.label) : head.no_label && html`none: <${Line} text=${head.no_label} />`],
      ['how sure', run.sure && html`<${Line} text=${run.sure} />`],
      ['refused', head.label && head.no_label && html`the label does not hold: <${Line} text=${head.no_label} />`],
      ['trace', run.trace],
      ['suspected', run.suspected && html`<${Line} text=${run.suspected} />`],
      ['steps', run.rows && many(run.rows.length, 'call') + ` of ${many(run.agents.length, 'agent')}`],
      ['account', accountWords(head.account)],
      ['kind', run.kind && head.label === null && !head.imported && run.kind],
      ['last reply', run.rows?.at(-1)?.words && html`<${Line} text=${run.rows.at(-1).words} />`],
      ['began', when(head.started)],
      ['upstream', html`<${Line} text=${head.upstream} />`],
      ['imported', head.imported && html`<${Line} text=${`${head.imported.format} ${head.imported.file}: bodies are remade from a trace`} />`],
      ['beginning', fork],
    ]} />
    ${notes.map((note) => html`<p class="warning"><${Line} text=${note} /></p>`)}
    <${Tabs} tabs=${tabs} chosen=${chosen} label="Views of the run" />
  <//>`;
}
