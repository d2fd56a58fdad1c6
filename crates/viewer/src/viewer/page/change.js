/**
 * What an injection changed in a step, and where those words went.
 */

import { html } from './vendor/preact.js';
import { Line, Long, Pieces } from './text.js';
import { many, plain } from './format.js';
import { Tag } from './part.js';

/** The changes of a step; `href(step)` is the address of another step. */
export function Changes({ told, href }) {
  if (!told.changes.length) return html`<p class="note">Nothing was changed in this step.</p>`;
  return html`${told.changes.map((change) => html`<${Side} change=${change} />`)}<${Spread} quoted=${told.quoted} href=${href} edited />`;
}

function Side({ change }) {
  const words = { request: 'What the agent asked, and what was sent instead', response: 'What the model answered, and what the agent got instead' };
  return html`<section class="changed">
    <h3>${words[change.side]}</h3>
    <p class="planted">${change.planted.map((error) => html`<${Planted} error=${error} />`)}</p>
    ${change.pairs.map((pair) => html`<${Pair} pair=${pair} />`)}
  </section>`;
}

/** What was planted, in a line. */
export function Planted({ error }) {
  const mode = error.failure_mode;
  return html`<span><${Tag} kind="planted">${mode ? `${mode.code} ${mode.name}` : 'fault'}<//> by ${plain(error.operator)}${
    error.delivered === false ? ', which did not arrive' : ''
  }${error.before_bytes && html` <span class="hash">${error.before_bytes.slice(0, 8)} → ${error.after_bytes?.slice(0, 8)}</span>`}</span>`;
}

/** What became of one block. */
export function Pair({ pair }) {
  if (pair.equal) return html`<p class="folded">${many(pair.equal, 'message')} unchanged</p>`;
  if (pair.gone) return html`<div class="said"><p class="speaker"><del><${Line} text=${pair.gone.who} /></del> taken out</p><del><${Long} text=${pair.gone.text} /></del></div>`;
  if (pair.came) return html`<div class="said"><p class="speaker"><ins><${Line} text=${pair.came.who} /></ins> put in</p><ins><${Long} text=${pair.came.text} /></ins></div>`;
  return html`<div class="said"><p class="speaker"><${Line} text=${pair.who} /></p><${Pieces} pieces=${pair.pieces} /></div>`;
}

/** Later steps whose request repeats a step's words. */
export function Spread({ quoted, href, edited = false }) {
  const what = quoted.words === 'new' ? 'What is new in the reply' : 'The reply';
  if (!quoted.steps.length && !edited) return null;
  return html`<section class="spread">
    <h3>Where it went</h3>
    ${quoted.steps.length === 0
      ? html`<p class="note">${what} is repeated in no later request (compared in runs of five words).</p>`
      : html`<p>${what} is repeated in ${quoted.steps.map(({ step, whole }, at) => html`${at > 0 && ', '}<a href=${href(step)}>step ${step}</a>${whole ? '' : ' (a part)'}`)}.</p>`}
    ${quoted.unread > 0 && html`<p class="note">${many(quoted.unread, 'later step')} were not searched.</p>`}
  </section>`;
}
