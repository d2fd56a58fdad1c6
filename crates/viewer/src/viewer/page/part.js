/**
 * Small parts that every screen has: a head, tabs, facts, waiting and failing, an interval, a command to copy.
 */

import { html, useState } from './vendor/preact.js';
import { many, percent } from './format.js';

/** The head of a screen: where it stands, its title, what is said of it. */
export function Head({ trail = [], title, aside, children }) {
  return html`<header class="head">
    <nav aria-label="Where"><a href="#/">All</a>${trail.map(([name, href]) => html` <span aria-hidden="true">/</span> <a href=${href}>${name}</a>`)}</nav>
    <div class="title"><h1 tabindex="-1">${title}</h1>${aside}</div>
    ${children}
  </header>`;
}

/** Links of which one is the present. `tabs` are `[name, words, href]`. */
export function Tabs({ tabs, chosen, label }) {
  return html`<nav class="tabs" aria-label=${label}>${tabs.map(
    ([name, words, href]) => html`<a href=${href} aria-current=${name === chosen ? 'page' : undefined}>${words}</a>`,
  )}</nav>`;
}

/** Names and values in rows; empty values are left out. */
export function Facts({ facts }) {
  const told = facts.filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '');
  return html`<dl class="facts">${told.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** What is shown until an answer is there, and where there is none. */
export function Awaited({ answer, children }) {
  if (answer.error) return html`<p class="failed" role="alert">${answer.error}</p>`;
  if (!answer.data) return html`<p class="wait">Reading…</p>`;
  return children(answer.data);
}

/** A command to type, with a button that copies it. */
export function Command({ text }) {
  const [copied, setCopied] = useState(false);
  const copy = () => navigator.clipboard?.writeText(text).then(() => setCopied(true), () => {});
  return html`<p class="command"><code>${text}</code>
    <button class="quiet" onClick=${copy} aria-label="Copy the command">${copied ? 'copied' : 'copy'}</button></p>`;
}

/** A value with its interval on a scale from `from` to `to`. The words beside it say the same. */
export function Interval({ value, low, high, from = 0, to = 1, kind = '' }) {
  const at = (number) => `${(100 * (number - from)) / (to - from)}%`;
  return html`<span class="interval ${kind}" role="img" aria-label="${percent(value)}, 95 % interval ${percent(low)} to ${percent(high)}">
    ${from < 0 && html`<i class="zero" style=${{ left: at(0) }}></i>`}
    <i class="range" style=${{ left: at(low), width: `${(100 * (high - low)) / (to - from)}%` }}></i>
    <i class="point" style=${{ left: at(value) }}></i></span>`;
}

/** A bar of a count among the most. */
export function Bar({ value, most, kind = '' }) {
  return html`<span class="bar ${kind}" aria-hidden="true"><i style=${{ width: `${most ? (100 * value) / most : 0}%` }}></i></span>`;
}

/** A short word in a frame. */
export function Tag({ kind = '', children }) {
  return html`<span class="tag ${kind}">${children}</span>`;
}

/** How many runs are not in the file, and where they are seen. */
export function LeftOut({ number }) {
  if (!number) return null;
  return html`<p class="note">${many(number, 'run')} ${number === 1 ? 'is' : 'are'} not in this file; <code>aegis view</code> shows all where the recordings lie.</p>`;
}
