// The page of `aegis view` in a real browser. Each test stands alone; one that fails says so, and the others go on.

import { browser, work, root } from './lab.mjs';
import * as screens from './screens.mjs';
import * as report from './report.mjs';
import * as annotate from './annotate.mjs';
import * as hostile from './hostile.mjs';
import * as long from './long.mjs';

// Modules name their tests by the alphabet; the screens come first, since they record what others look at.
const tests = [screens, report, annotate, hostile, long].flatMap((suite) => Object.entries(suite));
const wanted = process.argv.slice(3);
const chosen = tests.filter(([name]) => !wanted.length || wanted.some((part) => name.includes(part)));
if (!chosen.length) {
  console.error(`no test has ${wanted.join(' or ')} in its name: ${tests.map(([name]) => name).join(', ')}`);
  process.exit(2);
}
const began = performance.now();
const shown = await browser();
let failed = 0;
for (const [name, test] of chosen) {
  const start = performance.now();
  try {
    const figures = await test({ browser: shown, work, root });
    console.log(`ok      ${name}  ${((performance.now() - start) / 1000).toFixed(1)} s${figures ? `  ${figures}` : ''}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n        ${String(error.stack ?? error).split('\n').slice(0, 8).join('\n        ')}`);
  }
}
await shown.end();
console.log(`${chosen.length - failed} of ${chosen.length} passed in ${((performance.now() - began) / 1000).toFixed(0)} s`);
process.exit(failed ? 1 : 0);
