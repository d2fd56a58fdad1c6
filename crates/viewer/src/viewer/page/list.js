/**
 * A list of any length of which the rows in sight are in the page. One of it is chosen; the keys move the choice.
 */

import { html, useState, useEffect, useLayoutEffect, useRef } from './vendor/preact.js';

/** Rows beyond the edges. */
const BEYOND = 8;
/** Rows that are put on paper, which has no scroll bar. */
const PRINTED = 2000;

/** Whether the page is on its way to paper. */
export function usePrinted() {
  const [printed, setPrinted] = useState(() => matchMedia('print').matches);
  useEffect(() => {
    const paper = matchMedia('print');
    const changed = () => setPrinted(paper.matches);
    paper.addEventListener('change', changed);
    return () => paper.removeEventListener('change', changed);
  }, []);
  return printed;
}

/**
 * `rows` of `height` pixels each, drawn by `draw(row, index)`; `chosen` is an index, `choose(index)` changes it and
 * `open(index)` answers Enter and a click on what is chosen. `label` names the list, `id` its rows.
 */
export function List({ rows, height, draw, chosen = -1, choose = () => {}, open = () => {}, label, id, follow = false }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, tall: 600 });
  const printed = usePrinted();
  const first = printed ? 0 : Math.max(0, Math.floor(view.top / height) - BEYOND);
  const last = Math.min(rows.length, printed ? PRINTED : Math.ceil((view.top + view.tall) / height) + BEYOND);

  useLayoutEffect(() => {
    const node = box.current;
    const measure = () => setView({ top: node.scrollTop, tall: Math.min(node.clientHeight || 600, 1600) });
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(node);
    return () => watch.disconnect();
  }, []);

  useLayoutEffect(() => {
    const node = box.current;
    if (chosen < 0 || !node) return;
    const top = chosen * height;
    if (top < node.scrollTop || top + height > node.scrollTop + node.clientHeight) {
      node.scrollTop = Math.max(0, top - node.clientHeight / 3);
      setView({ top: node.scrollTop, tall: Math.min(node.clientHeight || 600, 1600) });
    }
  }, [chosen, height, id]);

  useEffect(() => {
    // Who reads the end stays at the end while it grows.
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [follow, rows.length]);

  const scrolled = (event) => setView({ top: event.currentTarget.scrollTop, tall: Math.min(event.currentTarget.clientHeight, 1600) });
  const page = Math.max(1, Math.floor(view.tall / height) - 1);
  const pressed = (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length };
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      if (chosen >= 0) open(chosen);
    } else if (event.key in steps && rows.length) {
      event.preventDefault();
      choose(Math.min(rows.length - 1, Math.max(0, chosen + steps[event.key])));
    }
  };
  const shown = [];
  for (let index = first; index < last; index += 1) {
    const mine = index === chosen;
    shown.push(html`<div role="option" id="${id}-${index}" key=${index} aria-selected=${mine ? 'true' : 'false'}
      aria-setsize=${rows.length} aria-posinset=${index + 1} class="row ${mine ? 'chosen' : ''}"
      style=${{ top: `${index * height}px`, height: `${height}px` }}
      onClick=${() => (choose(index), open(index))}>${draw(rows[index], index)}</div>`);
  }
  return html`<div class="list" role="listbox" tabindex="0" aria-label=${label} ref=${box} style=${{ '--tall': `${rows.length * height}px` }} onScroll=${scrolled} onKeyDown=${pressed}
    aria-activedescendant=${chosen >= first && chosen < last ? `${id}-${chosen}` : undefined}>
    <div class="tall" role="presentation" style=${{ height: `${rows.length * height}px` }}>${shown}</div></div>`;
}
