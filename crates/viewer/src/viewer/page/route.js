/**
 * Where the reader is. All of it stands behind the `#`, so that a link leads to a step: `#/run/R/12?tab=raw&with=R2`.
 */

import { useState, useEffect } from './vendor/preact.js';

/** Reads an address: as it stands, its parts, and what it sets. */
export function parse(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decode);
  const set = {};
  for (const pair of query.split('&').filter(Boolean)) {
    const [name, value = ''] = pair.split('=');
    set[decode(name)] = decode(value);
  }
  return { hash, parts, set };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Writes an address. Settings that are empty are left out. */
export function address(parts, set = {}) {
  const path = parts.map((part) => encodeURIComponent(part)).join('/');
  const pairs = Object.entries(set).filter(([, value]) => value !== '' && value !== null && value !== undefined);
  const query = pairs.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&');
  return `#/${path}${query ? `?${query}` : ''}`;
}

/** The address as it is, kept up to date. */
export function useRoute() {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => setRoute((route) => (route.hash === location.hash ? route : parse(location.hash)));
    addEventListener('hashchange', changed);
    // The address may have changed after the first drawing and before anything listened.
    changed();
    return () => removeEventListener('hashchange', changed);
  }, []);
  return route;
}

/** Goes to an address; without a step back for what is only a cursor. */
export function go(to, { replace = false } = {}) {
  if (replace) {
    history.replaceState(null, '', to);
    dispatchEvent(new HashChangeEvent('hashchange'));
  } else {
    location.hash = to;
  }
}
