/**
 * What people say of a run: who made the error that decided it, at which step, and why. Who says it sees only what
 * happened; who reads it sees what everybody said.
 */

import { html, useRef, useState } from './vendor/preact.js';
import { send } from './source.js';
import { when } from './format.js';
import { Line } from './text.js';
import { useKeys } from './keys.js';
import { Tag } from './part.js';

/** What everybody said; `href(step)` is the address of a step. */
export function Annotations({ said, href }) {
  if (!said?.length) return null;
  return html`<section class="annotations" aria-label="What people say"><h2>What people say</h2>
    <ul>${said.map((one) => html`<li><b><${Line} text=${one.annotator} /></b> ${one.error
      ? html`<a href=${href(one.error.step)}>step ${one.error.step}</a> · <${Line} text=${one.error.agent} />`
      : 'saw no error'}${!one.sure && html` <${Tag}>unsure<//>`}${!one.blind && html` <${Tag}>imported<//>`}${
      one.error && html`<p><${Line} text=${one.error.why} /></p>`}</li>`)}</ul></section>`;
}

/** The form of an annotator. `chosen` is the step that is shown; `name` the run. */
export function Annotate({ run, name, chosen, href }) {
  const [saved, setSaved] = useState(run.annotation);
  const [step, setStep] = useState(saved ? (saved.error?.step ?? null) : undefined);
  const [why, setWhy] = useState(saved?.error?.why ?? '');
  const [sure, setSure] = useState(saved?.sure ?? true);
  const [failed, setFailed] = useState(null);
  const reason = useRef(null);
  const agentOf = (number) => run.agents[run.rows.find((row) => row.step === number)?.agent] ?? '';
  const blame = () => {
    setStep(chosen);
    reason.current.focus();
  };
  useKeys({ a: blame });
  const ready = step === null || (step !== undefined && why.trim());
  const save = (event) => {
    event.preventDefault();
    setFailed(null);
    if (!ready) return setFailed('Say which step, and why.');
    return send(`annotation/${name}`, { step, why, sure }, [`run/${name}`, 'tree']).then(setSaved, (error) => setFailed(error.message));
  };
  return html`<form class="annotate" aria-label="Annotation" onSubmit=${save}>
    <h2>Which error decided this run? <small>blind, as <${Line} text=${run.annotator} /></small></h2>
    <p class="choice">
      <button type="button" aria-pressed=${step === chosen ? 'true' : 'false'} onClick=${blame}>Step ${chosen}, which is shown</button>
      <button type="button" aria-pressed=${step === null ? 'true' : 'false'} onClick=${() => setStep(null)}>None</button>
      <span>${step === undefined ? 'Not said yet.' : step === null ? 'No error decided it.' : html`<a href=${href(step)}>Step ${step}</a> · <${Line} text=${agentOf(step)} />`}</span></p>
    <label class="why">Why <textarea rows="2" maxlength="8000" ref=${reason} value=${why} onInput=${(event) => setWhy(event.currentTarget.value)}></textarea></label>
    <p class="choice"><label><input type="checkbox" checked=${sure} onChange=${(event) => setSure(event.currentTarget.checked)} /> I am sure</label>
      <button>Save</button>
      <span role="status">${failed ? html`<span class="failed">${failed}</span>` : saved ? `Saved ${when(saved.at)}` : ''}</span></p>
  </form>`;
}
