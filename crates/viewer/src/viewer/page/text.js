/**
 * Text of unknown origin. It becomes text nodes and nothing else; what would steer or disorder the page is made visible.
 */

import { html, useState } from './vendor/preact.js';
import { bytes } from './format.js';

/** Control characters but line feed and tab, and marks that turn the direction of writing. */
// eslint-disable-next-line no-control-regex
const STEERS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;
/** A text of more characters is shown by its beginning. */
const SHOWN = 12000;

/** What a character is called where it is not shown as itself. */
function called(char) {
  const code = char.codePointAt(0);
  if (code === 27) return 'ESC';
  if (code < 32) return String.fromCodePoint(0x2400 + code);
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** A text as nodes, what steers as marks. */
export function inert(text) {
  if (!STEERS.test(text)) return text;
  const nodes = [];
  let plain = '';
  for (const char of text) {
    if (STEERS.test(char)) {
      if (plain) nodes.push(plain);
      plain = '';
      nodes.push(html`<span class="steers" title="a control character">${called(char)}</span>`);
    } else {
      plain += char;
    }
  }
  if (plain) nodes.push(plain);
  return nodes;
}

/** A short text in a line. */
export function Line({ text, class: kind = '' }) {
  return html`<bdi class=${kind}>${inert(String(text ?? ''))}</bdi>`;
}

/** A long text: its beginning, and a way to the rest. */
export function Long({ text, whole, href }) {
  const [all, setAll] = useState(false);
  const shown = all || text.length <= SHOWN ? text : text.slice(0, SHOWN);
  const more = text.length - shown.length;
  return html`<div class="long">
    <pre dir="auto" tabindex=${shown.length > 2000 ? '0' : undefined}>${inert(shown)}</pre>
    ${more > 0 && html`<button class="quiet" onClick=${() => setAll(true)}>${bytes(more)} more</button>`}
    ${whole && html`<p class="note">The first ${bytes(text.length)} of ${bytes(whole)}.
      ${href && html` <a href=${href} download>Save the whole</a>`}</p>`}
  </div>`;
}

/** Two texts in one, as the server cut them: what went, what came. */
export function Pieces({ pieces }) {
  if (!Array.isArray(pieces)) {
    return html`<div class="apart">
      <pre dir="auto"><del>${inert(pieces.old)}</del></pre>
      <pre dir="auto"><ins>${inert(pieces.new)}</ins></pre>
    </div>`;
  }
  return html`<pre dir="auto">${pieces.map(([kept, text]) => {
    if (kept === 'old') return html`<del>${inert(text)}</del>`;
    if (kept === 'new') return html`<ins>${inert(text)}</ins>`;
    return inert(text);
  })}</pre>`;
}
