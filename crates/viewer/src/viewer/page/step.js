/**
 * One step at length: what is new in its request, the reply, tools, stored bytes, times.
 */

import { html, useState } from './vendor/preact.js';
import { useAnswer, isFile } from './source.js';
import { Line, Long } from './text.js';
import { bytes, count, duration, many, numbered, plain } from './format.js';
import { Awaited, Facts, Tabs, Tag } from './part.js';
import { Changes, Planted, Spread } from './change.js';

/** `base` is the path of the run's data, `href(step, tab)` an address. */
export function Step({ base, step, tab, signs, questions = [], href, twin, introduced }) {
  const answer = useAnswer(`${base}/texts/${step}`);
  return html`<section class="step" aria-label="Step ${step}">
    <${Awaited} answer=${answer}>${(told) => html`<${Told} told=${told} base=${base} tab=${tab} signs=${signs} questions=${questions} href=${href} twin=${twin} introduced=${introduced} />`}<//>
  </section>`;
}

function Told({ told, base, tab, signs, questions, href, twin, introduced }) {
  const tabs = [['messages', 'Messages']];
  if (told.changes.length) tabs.push(['changed', 'Before and after']);
  if (told.tools.length) tabs.push(['tools', `Tools ${told.tools.length}`]);
  if (!told.sample) tabs.push(['raw', 'Stored bytes'], ['times', 'Times']);
  const wanted = tab || (told.changes.length ? 'changed' : 'messages');
  const chosen = tabs.some(([name]) => name === wanted) ? wanted : 'messages';
  const link = ([name, words]) => [name, words, href(told.step, name)];
  return html`
    <h2>Step ${told.step} <span class="soft">·</span> <${Line} text=${numbered(told)} />
      <small>call ${told.call}${told.ambiguous && html` <${Tag} kind="odd">ambiguous<//>`}${told.overlapping && html` <${Tag}>overlapping<//>`}</small></h2>
    ${introduced && html`<p class="introduced"><${Line} text=${introduced} /></p>`}
    ${told.injected.length > 0 && chosen !== 'changed' && html`<p class="planted">${told.injected.map((error) => html`<${Planted} error=${error} />`)}</p>`}
    ${signs.map((sign) => html`<${Sign} sign=${sign} />`)}
    ${questions.map((one) => html`<${Question} question=${one} />`)}
    ${told.account && ['request', 'reply'].map((side) => html`<${NotRead} side=${side} state=${told.account[side]} />`)}
    <${Tabs} tabs=${tabs.map(link)} chosen=${chosen} label="Parts of the step" />
    ${chosen === 'messages' && html`<${Messages} told=${told} base=${base} href=${href} />`}
    ${chosen === 'changed' && html`<${Changes} told=${told} href=${(step) => href(step)} />`}
    ${chosen === 'tools' && html`<${Tools} tools=${told.tools} />`}
    ${chosen === 'raw' && html`<${Raw} base=${base} told=${told} />`}
    ${chosen === 'times' && html`<${Times} told=${told} />`}
    ${twin && html`<p class="note"><a href=${twin}>${told.changes.length ? 'Beside the run without it' : 'The two runs side by side'}</a></p>`}`;
}

/** What a rule saw at the step: a sign, which proves nothing. */
function Sign({ sign }) {
  return html`<p class="sign"><${Tag} kind="odd">${sign.rule}<//> <${Line} text=${sign.seen} />${sign.quote && html`: <q><${Line} text=${sign.quote} /></q>`}${sign.stops && ' (the run was stopped for it)'}</p>`;
}

/** What a model was asked for an edit, and what it answered. */
function Question({ question }) {
  const text = (body) => (body === null ? '' : typeof body === 'string' ? body : JSON.stringify(body, null, 1));
  return html`<details class="question"><summary>${question.model ?? 'A model'} was asked for the edit ${plain(question.operator)}${question.error ? ' and gave none' : ''}</summary>
    <p class="speaker">question</p><${Long} text=${text(question.question)} />
    <p class="speaker">answer</p>${question.answer === null ? html`<p class="note"><${Line} text=${question.error ?? 'none'} /></p>` : html`<${Long} text=${text(question.answer)} />`}</details>`;
}

/** What of a body stands in no view. */
function NotRead({ side, state }) {
  if (state.state === 'read') return null;
  const pieces = (state.unplaced ?? []).map((piece) => html`<li><code><${Line} text=${piece.place} /></code> is ${piece.what}: <q><${Line} text=${piece.quote} /></q></li>`);
  return html`<div class="sign"><${Tag} kind="odd">${side} ${state.state}<//> ${state.why && html`<${Line} text=${state.why} />`}${pieces.length > 0 && html`<ul>${pieces}</ul>`}</div>`;
}

function Messages({ told, base, href }) {
  const [all, setAll] = useState(null);
  const shown = all === told.step;
  const known = told.request.filter((block) => block.known).length;
  const parts = [];
  let folded = 0;
  const fold = () => {
    if (folded) parts.push(html`<p class="folded">${many(folded, 'message')} as before</p>`);
    folded = 0;
  };
  for (const block of told.request) {
    if (block.known && !shown) {
      folded += 1;
    } else {
      fold();
      parts.push(html`<${Said} block=${block} href=${`/api/${base}/file/${told.step}/request`} />`);
    }
  }
  fold();
  return html`
    <div class="asked"><h3>Asked${told.edited_request && ' by the agent; an injection changed it'}</h3>
      ${known > 0 && html`<p class="note">${shown ? `All ${count(told.request.length)} messages. ` : `New since ${told.since === null ? 'the call before' : `step ${told.since}`}. `}
        <button class="quiet" onClick=${() => setAll(shown ? null : told.step)}>${shown ? 'Only what is new' : `All ${count(told.request.length)} messages`}</button></p>`}
      ${parts}</div>
    ${told.attempts.map((attempt) => html`<${Answered} attempt=${attempt} alone=${told.attempts.length === 1}
      href=${`/api/${base}/file/${told.step}/${attempt.edited ? 'delivered' : 'reply'}/${attempt.attempt}`} />`)}
    <${Spread} quoted=${told.quoted} href=${(step) => href(step)} />`;
}

function Said({ block, href }) {
  return html`<div class="said ${block.who.split(' ')[0]} ${block.known ? 'known' : ''}">
    <p class="speaker"><${Line} text=${block.who} /></p><${Long} text=${block.text} whole=${block.bytes} href=${isFile ? null : href} /></div>`;
}

function Answered({ attempt, alone, href }) {
  const bad = attempt.ending && attempt.ending !== 'answered';
  const facts = [attempt.status, attempt.cause && attempt.cause !== 'complete' ? plain(attempt.cause) : bad && attempt.status < 400 ? plain(attempt.ending) : null, attempt.last_byte_us && duration(attempt.last_byte_us / 1000)];
  if (attempt.usage) facts.push(`${count(attempt.usage.input)} → ${count(attempt.usage.output)} tokens`);
  if (attempt.events) facts.push(many(attempt.events, 'event'));
  return html`<div class="answered ${bad ? 'bad' : ''}">
    <h3>${alone ? (attempt.origin === 'remade' ? 'The reply' : 'Answered') : `Try ${attempt.attempt + 1}`} <small>${facts.filter(Boolean).join(' · ')}${attempt.edited && html` <${Tag} kind="planted">changed<//>`}${
      attempt.origin && attempt.origin !== 'live' && html` <${Tag} kind="odd">${plain(attempt.origin)}<//>`}${
      attempt.exact === false && attempt.origin !== 'remade' && html` <${Tag} kind="odd">masked or cut<//>`}</small></h3>
    ${attempt.reply.length === 0 && html`<p class="note">No reply.</p>`}
    ${attempt.reply.map((block) => html`<${Said} block=${block} href=${href} />`)}
  </div>`;
}

function Tools({ tools }) {
  return html`<ul class="tools">${tools.map((tool) => html`<li><h3><${Line} text=${tool.name} /></h3>
    ${tool.description && html`<p><${Line} text=${tool.description} /></p>`}
    ${tool.parameters && html`<${Long} text=${JSON.stringify(tool.parameters, null, 2)} />`}</li>`)}</ul>`;
}

function Raw({ base, told }) {
  const bodies = [['request', 'Request']];
  if (told.edited_request) bodies.push(['sent', 'Request as it was sent on']);
  for (const attempt of told.attempts) {
    const number = told.attempts.length > 1 ? `, try ${attempt.attempt + 1}` : '';
    bodies.push([`reply/${attempt.attempt}`, `Reply${number}`]);
    if (attempt.edited) bodies.push([`delivered/${attempt.attempt}`, `Reply as the agent got it${number}`]);
  }
  return html`${bodies.map(([which, words]) => html`<${Body} key=${which} base=${base} step=${told.step} which=${which} words=${words} />`)}`;
}

function Body({ base, step, which, words }) {
  const answer = useAnswer(`${base}/raw/${step}/${which}`);
  const href = isFile ? null : `/api/${base}/file/${step}/${which}`;
  return html`<section class="said"><h3>${words}</h3><${Awaited} answer=${answer}>${(body) => html`
    <p class="note">${bytes(body.bytes)}${body.base64 !== undefined && ', no text: base64'}${href && html` · <a href=${href} download>save</a>`}</p>
    <${Long} text=${body.text ?? body.base64} whole=${body.shown < body.bytes ? body.bytes : null} href=${href} />`}<//></section>`;
}

function Times({ told }) {
  const pairs = (headers) => (headers ?? []).map(([name, value]) => html`<div><dt><${Line} text=${name} /></dt><dd><${Line} text=${value} /></dd></div>`);
  return html`<${Facts} facts=${[['known by', html`<${Line} text=${told.known_by} />`], ['surface', told.surface], ['address', html`${told.method} <${Line} text=${told.path} />`], ['turn', told.turn]]} />
    ${told.attempts.map((attempt) => html`<section><h3>Try ${attempt.attempt + 1}</h3>
      <${Facts} facts=${[
        ['arrived', attempt.at],
        ['first byte after', attempt.first_byte_us === null ? '' : duration(attempt.first_byte_us / 1000)],
        ['whole after', attempt.last_byte_us === null ? '' : duration(attempt.last_byte_us / 1000)],
        ['closed', plain(attempt.cause)],
        ['ended', plain(attempt.ending)],
        ['finish reason', attempt.finish_reason],
        ['length', bytes(attempt.bytes)],
      ]} />
      <details><summary>Headers</summary><dl class="facts">${pairs(attempt.request_headers)}</dl><dl class="facts">${pairs(attempt.reply_headers)}</dl></details></section>`)}`;
}
