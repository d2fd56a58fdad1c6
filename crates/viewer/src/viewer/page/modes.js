/**
 * Which failure mode a planted change shows, of three that are offered: who answers sees the change, and not what its plan calls it.
 */

import { html, useState } from './vendor/preact.js';
import { send } from './source.js';
import { Line } from './text.js';
import { Pair } from './change.js';

/** The questions of a run, one a change; `href(step)` is the address of a step. */
export function ModeQuestions({ run, name, href }) {
  const questions = run.mode_questions;
  return html`<section class="annotate" aria-label="Failure modes">
    <h2>Which failure does each change show? <small>as <${Line} text=${run.annotator} /></small></h2>
    ${questions.length === 0 && html`<p class="note">Nothing was planted in this run that has a failure mode.</p>`}
    ${questions.map((question) => html`<${ModeQuestion} key=${`${question.step}/${question.injection}`} question=${question} name=${name} href=${href} />`)}
  </section>`;
}

function ModeQuestion({ question, name, href }) {
  const [shown, setShown] = useState(question.said ? question.said.shown : undefined);
  const [why, setWhy] = useState(question.said?.why ?? '');
  const [status, setStatus] = useState(question.said ? 'Saved' : '');
  const [failed, setFailed] = useState(null);
  const where = question.side === 'request' ? 'what it was told' : 'its reply';
  const choose = (code) => {
    setShown(code);
    setStatus('');
  };
  const save = (event) => {
    event.preventDefault();
    setFailed(null);
    if (shown === undefined) return setFailed('Choose one of them, or none.');
    const { step, injection } = question;
    return send(`annotation/${name}`, { step, injection, shown, why }, [`run/${name}`, 'tree']).then(
      () => setStatus('Saved'),
      (error) => setFailed(error.message),
    );
  };
  const choice = (code, words) => html`<label><input type="radio" name=${`mode-${question.step}-${question.injection}`} checked=${shown === code} onChange=${() => choose(code)} /> ${words}</label>`;
  return html`<form aria-label=${`The change at step ${question.step}`} onSubmit=${save}>
    <h3><a href=${href(question.step)}>Step ${question.step}</a> · <${Line} text=${question.agent} />: ${where} was changed</h3>
    <div class="changed">${question.pairs.map((pair) => html`<${Pair} pair=${pair} />`)}</div>
    <fieldset class="modes"><legend>By the changed reply, or by doing what it was now told, the agent…</legend>
      ${question.offered.map((mode) => choice(mode.code, html`${mode.meaning} <small>${mode.code} ${mode.name}</small>`))}
      ${choice(null, 'does none of these')}</fieldset>
    <label class="why">Why <textarea rows="2" maxlength="8000" value=${why} onInput=${(event) => setWhy(event.currentTarget.value)}></textarea></label>
    <p class="choice"><button>Save</button> <span role="status">${failed ? html`<span class="failed">${failed}</span>` : status}</span></p>
  </form>`;
}
