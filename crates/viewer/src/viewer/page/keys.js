/**
 * Keys of the page: single letters, taken only where nothing is typed.
 */

import { html, useEffect, useRef } from './vendor/preact.js';

/** What the keys do, for the list behind `?`. */
export const KEYS = [
  ['j k', 'next and former step'],
  ['n p', 'next and former step that something happened at'],
  ['g G', 'first and last step'],
  ['t', 'over time or over steps'],
  ['+ −', 'closer, farther'],
  ['a', 'annotate the step (aegis view --annotate)'],
  ['/', 'to the filter or the search'],
  ['u', 'up: to the list of all'],
  ['?', 'this list'],
  ['Esc', 'close it'],
];

/** Binds keys as long as the component is shown. `keys` are functions by key. */
export function useKeys(keys) {
  const bound = useRef(keys);
  bound.current = keys;
  useEffect(() => {
    const pressed = (event) => {
      const typing = event.target.closest?.('input, select, textarea');
      const run = bound.current[event.key];
      // Enter belongs to what has the focus; only where nothing has, it is a key of the page.
      const taken = event.key === 'Enter' && event.target !== document.body;
      if (typing || taken || !run || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      run();
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);
}

/** The list of keys. */
export function KeyList({ close }) {
  const box = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${box} onClose=${close} aria-label="Keys">
    <h2>Keys</h2>
    <dl class="keys">${KEYS.map(([key, does]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${does}</dd></div>`)}</dl>
    <button onClick=${() => box.current.close()}>Close</button></dialog>`;
}
