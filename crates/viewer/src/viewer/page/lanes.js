/**
 * Who spoke when: a lane an agent, over steps or time, as a drawing. The list of steps beside it says the same in words.
 */

import { html, useEffect, useLayoutEffect, useRef, useState } from './vendor/preact.js';
import { marksOf, MARKS } from './marks.js';
import { Line } from './text.js';
import { count, duration } from './format.js';

/** Lanes that are drawn apart; further agents share one. */
const LANES = 12;
const TALL = 20;
const RULER = 18;
/** The narrowest a call is drawn. */
const NARROW = 3;

/** The lane of each agent, and the names of the lanes. */
function lanesOf(agents) {
  if (agents.length <= LANES) return { names: agents, lane: (agent) => agent };
  const names = [...agents.slice(0, LANES - 1), `others (${agents.length - LANES + 1})`];
  return { names, lane: (agent) => Math.min(agent, LANES - 1) };
}

/** Where a call begins and ends on the axis. */
function spanOf(row, byTime) {
  return byTime ? [row.at ?? 0, (row.at ?? 0) + (row.ms ?? 0)] : [row.step, row.step + 0.82];
}

/** `rows` in the order of steps; `chosen` a step, `choose(step)` changes it; `quoted` what the chosen step's words went into. */
export function Lanes({ rows, agents, introduced, byTime, chosen, choose, quoted = [], zoom, setZoom }) {
  const canvas = useRef(null);
  const [wide, setWide] = useState(800);
  const [scheme, setScheme] = useState(0);
  const { names, lane } = lanesOf(agents);
  const end = rows.reduce((most, row) => Math.max(most, spanOf(row, byTime)[1]), 1);
  const view = zoom ?? [0, end];
  const tall = RULER + names.length * TALL + 4;

  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWide(Math.max(120, entry.contentRect.width)));
    watch.observe(canvas.current.parentNode);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const changed = () => setScheme((number) => number + 1);
    dark.addEventListener('change', changed);
    return () => dark.removeEventListener('change', changed);
  }, []);
  useLayoutEffect(() => {
    const field = { rows, lane, lanes: names.length, byTime, chosen, quoted, view, wide, tall };
    draw(canvas.current, field);
  }, [rows, names.length, byTime, chosen, quoted, view[0], view[1], wide, tall, scheme]);

  const place = (event) => {
    const box = canvas.current.getBoundingClientRect();
    return view[0] + ((event.clientX - box.left) / box.width) * (view[1] - view[0]);
  };
  const clicked = (event) => {
    const at = place(event);
    const box = canvas.current.getBoundingClientRect();
    const row = nearest(rows, at, Math.floor((event.clientY - box.top - RULER) / TALL), lane, byTime);
    if (row) choose(row.step);
  };
  const turned = (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    setZoom(zoomed(view, event.deltaY < 0 ? 0.7 : 1 / 0.7, place(event), end));
  };
  const move = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const middle = ((event.clientX - box.left) / box.width) * end;
    const half = (view[1] - view[0]) / 2;
    const from = Math.min(Math.max(0, middle - half), end - 2 * half);
    setZoom([from, from + 2 * half]);
  };
  const unit = byTime ? duration(end) : `${count(rows.length)} steps`;
  return html`<figure class="lanes">
    <div class="names" aria-hidden="true" style=${{ paddingTop: `${RULER}px` }}>${names.map((name, at) => html`<div title=${introduced?.[at] ?? ''}><${Line} text=${name} /></div>`)}</div>
    <div class="field"><canvas ref=${canvas} role="img" onClick=${clicked} onWheel=${turned}
      style=${{ height: `${tall}px` }} aria-label="Calls of ${names.length} agents over ${unit}; the list of steps says the same"></canvas></div>
    ${zoom && html`<div class="whole" onClick=${move} aria-hidden="true"><i style=${{ left: `${(100 * view[0]) / end}%`, width: `${(100 * (view[1] - view[0])) / end}%` }}></i></div>`}
  </figure>`;
}

/** A view that shows less or more around a place, and never leaves the run. */
export function zoomed([from, to], by, around, end) {
  const wide = Math.min(end, Math.max((to - from) * by, end / 2000));
  const start = Math.min(Math.max(0, around - ((around - from) / (to - from)) * wide), end - wide);
  return wide >= end ? null : [start, start + wide];
}

function nearest(rows, at, lanes, lane, byTime) {
  let best = null;
  let least = Infinity;
  for (const row of rows) {
    const [from, to] = spanOf(row, byTime);
    const away = (at < from ? from - at : Math.max(0, at - to)) + (lane(row.agent) === lanes ? 0 : 1e6);
    if (away < least) [best, least] = [row, away];
  }
  return best;
}

function draw(node, field) {
  const { rows, lane, byTime, chosen, view, wide, tall } = field;
  const ratio = devicePixelRatio || 1;
  node.width = wide * ratio;
  node.height = tall * ratio;
  const pen = node.getContext('2d');
  pen.scale(ratio, ratio);
  // A drawing takes resolved colours only: the page's scheme decides what a name means.
  const style = getComputedStyle(node);
  const resolved = new Map();
  const colour = (name) => {
    if (!resolved.has(name)) {
      node.style.color = `var(--${name})`;
      resolved.set(name, style.color);
    }
    return resolved.get(name);
  };
  const x = (value) => 2 + ((value - view[0]) / (view[1] - view[0])) * (wide - 4);
  ruler(pen, field, x, colour);
  const middle = (row) => RULER + lane(row.agent) * TALL + TALL / 2;
  for (const row of rows) {
    const [from, to] = spanOf(row, byTime);
    if (to < view[0] || from > view[1]) continue;
    const left = x(from);
    const width = Math.max(NARROW, x(to) - left - (byTime ? 0 : 1));
    call(pen, row, left, middle(row) - 6, width, colour);
  }
  const by = new Map(rows.map((row) => [row.step, row]));
  const own = by.get(chosen);
  if (!own) return;
  for (const { step, whole } of field.quoted) {
    const other = by.get(step);
    if (other) edge(pen, [x(spanOf(own, byTime)[1]), middle(own)], [x(spanOf(other, byTime)[0]), middle(other)], whole, colour('link'));
  }
  pen.strokeStyle = colour('ink');
  pen.lineWidth = 1.5;
  const [from, to] = spanOf(own, byTime);
  pen.strokeRect(x(from) - 2, middle(own) - 8.5, Math.max(NARROW, x(to) - x(from)) + 3, 17);
}

function ruler(pen, { lanes, byTime, view, wide, tall }, x, colour) {
  pen.font = '11px system-ui, sans-serif';
  pen.fillStyle = colour('soft');
  pen.strokeStyle = colour('rule');
  pen.lineWidth = 1;
  const rough = ((view[1] - view[0]) / wide) * 90;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 0.001)));
  const every = [1, 2, 5, 10].map((times) => times * power).find((step) => step >= rough) ?? rough;
  const step = byTime ? every : Math.max(1, Math.round(every));
  for (let at = Math.ceil(view[0] / step) * step; at <= view[1]; at += step) {
    const left = Math.round(x(at)) + 0.5;
    pen.beginPath();
    pen.moveTo(left, RULER - 4);
    pen.lineTo(left, tall);
    pen.stroke();
    if (left < wide - 40) pen.fillText(byTime ? duration(at) : count(at), left + 3, 11);
  }
  for (let lane = 1; lane < lanes; lane += 1) {
    pen.beginPath();
    pen.moveTo(0, RULER + lane * TALL + 0.5);
    pen.lineTo(wide, RULER + lane * TALL + 0.5);
    pen.stroke();
  }
}

/** A call: filled where the upstream answered, hollow and hatched where something else did, hollow where it is open; signs above. */
function call(pen, row, left, top, width, colour) {
  const main = row.state === 'error' ? colour('bad') : colour('live');
  const elsewhere = !['live', 'open', 'error'].includes(row.state);
  pen.fillStyle = pen.strokeStyle = elsewhere ? colour('soft') : main;
  pen.lineWidth = 1;
  if (elsewhere || row.state === 'open') {
    pen.strokeRect(left + 0.5, top + 0.5, Math.max(2, width - 1), 11);
    for (let at = 3; elsewhere && at < width; at += 4) {
      pen.beginPath();
      pen.moveTo(left + at, top + 1);
      pen.lineTo(left + Math.max(0, at - 4), top + 11);
      pen.stroke();
    }
  } else {
    pen.globalAlpha = row.state === 'live' && row.marks.length ? 0.55 : 0.9;
    pen.fillRect(left, top, width, 12);
    pen.globalAlpha = 1;
  }
  const sign = marksOf(row).find((name) => MARKS[name].colour !== 'live' && MARKS[name].colour !== 'faint');
  if (!sign) return;
  pen.save();
  pen.translate(left + width / 2 - 6, top);
  pen.scale(0.75, 0.75);
  const form = new Path2D(MARKS[sign].form);
  pen.fillStyle = colour(MARKS[sign].colour);
  pen.strokeStyle = colour('paper');
  pen.lineWidth = 3;
  pen.stroke(form);
  pen.fill(form, 'evenodd');
  pen.restore();
}

/** Words that went on: solid where all were told again, dashed where a part was. */
function edge(pen, [fromX, fromY], [toX, toY], whole, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.setLineDash(whole ? [] : [4, 3]);
  pen.beginPath();
  pen.moveTo(fromX, fromY);
  const bend = Math.max(14, (toX - fromX) / 2);
  pen.bezierCurveTo(fromX + bend, fromY, toX - bend, toY, toX, toY);
  pen.stroke();
  pen.setLineDash([]);
}
