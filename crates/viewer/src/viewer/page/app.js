/**
 * The page: a session, an address, the screen that it names.
 */

import { html, render, useEffect, useState } from './vendor/preact.js';
import { openSession, start } from './source.js';
import { go, useRoute } from './route.js';
import { KeyList, useKeys } from './keys.js';
import { Run } from './run.js';
import { Runs } from './runs.js';
import { Choose, Compare } from './compare.js';
import { Trace } from './trace.js';
import { AttributionScreen } from './attribution.js';
import { CampaignScreen } from './campaign.js';
import { DatasetScreen } from './dataset.js';
import { Head } from './part.js';

const SCREENS = {
  run: ({ parts, set }) => html`<${Run} kind="run" parts=${parts} set=${set} />`,
  sample: ({ parts, set }) => html`<${Run} kind="sample" parts=${parts} set=${set} />`,
  diff: Compare,
  compare: Choose,
  trace: Trace,
  attribution: AttributionScreen,
  campaign: CampaignScreen,
  dataset: DatasetScreen,
};

/** What stands at an address that names nothing. */
function NoScreen() {
  return html`<main><${Head} title="No such page" /><p class="failed" role="alert">There is nothing at this address. <a href="#/">All runs, campaigns and data sets</a></p></main>`;
}

function App() {
  const { hash, parts, set } = useRoute();
  const [keys, setKeys] = useState(false);
  useKeys({ '?': () => setKeys(true), u: () => go('#/') });
  const [screen, ...rest] = parts;
  const Screen = screen === undefined ? Runs : SCREENS[screen] ?? NoScreen;
  useEffect(() => {
    document.title = [rest[0], screen, 'Aegis'].filter(Boolean).join(' · ');
  }, [screen, rest[0]]);
  // What drives the page from outside waits for this: the address changes before what it names is drawn.
  useEffect(() => {
    place.dataset.shown = hash;
  }, [hash]);
  return html`<${Screen} parts=${rest} set=${set} />
    <footer><button class="quiet" onClick=${() => setKeys(true)}>Keys <kbd>?</kbd></button></footer>
    ${keys && html`<${KeyList} close=${() => setKeys(false)} />`}`;
}

const place = document.getElementById('app');

function show(node) {
  place.replaceChildren();
  render(node, place);
}

if (start && location.hash.length < 2) history.replaceState(null, '', start);
openSession().then(
  () => show(html`<${App} />`),
  (error) => show(html`<main><p class="failed" role="alert">${error.message}</p></main>`),
);
