/**
 * Numbers, times and words as people read them.
 */

const WHOLE = new Intl.NumberFormat('en');

/** A whole number with its thousands apart. */
export function count(number) {
  return number === null || number === undefined ? '–' : WHOLE.format(number);
}

/** A number of things: `1 step`, `2 steps`. */
export function many(number, thing) {
  return `${count(number)} ${thing}${number === 1 ? '' : 's'}`;
}

/** Milliseconds in the unit that suits them. */
export function duration(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Bytes in the unit that suits them. */
export function bytes(number) {
  if (number < 1024) return `${number} B`;
  if (number < 1048576) return `${(number / 1024).toFixed(number < 10240 ? 1 : 0)} kB`;
  return `${(number / 1048576).toFixed(1)} MB`;
}

/** A time of the recording: day and minute, UTC as it was written. */
export function when(text) {
  return text ? text.slice(0, 16).replace('T', ' ') : '';
}

/** A share in percent. */
export function percent(share) {
  return `${Math.round(100 * share)} %`;
}

/** A word of the data as people write it: `not_tested` is `not tested`. */
export function plain(word) {
  return String(word ?? '').replaceAll('_', ' ');
}

/** The name of an agent, with its number where several are equal: `debater`, `debater#1`. */
export function numbered({ agent, instance }) {
  return instance ? `${agent}#${instance}` : agent;
}

/** What was executed in one arm: `5 of 5 passed`, and what says nothing. */
export function arm(executions) {
  if (!executions) return '–';
  const passed = executions.passed ?? 0;
  const voids = Object.entries(executions.void ?? {}).map(([why, times]) => `${times} ${plain(why)}`);
  const said = `${passed} of ${passed + (executions.failed ?? 0)} passed`;
  return voids.length ? `${said}, void: ${voids.join(', ')}` : said;
}

/** How many steps of a run were not read whole: `2 partly read, 1 unread`; nothing where all were, or where nobody looked. */
export function accountWords(account) {
  const words = ['partly_read', 'unread'].filter((state) => account?.[state]).map((state) => `${count(account[state])} ${plain(state)}`);
  if (account?.requests_left_out) words.push(`${count(account.requests_left_out)} requests not looked at`);
  return words.join(', ');
}
