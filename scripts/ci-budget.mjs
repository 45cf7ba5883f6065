// What a run of CI took, suite by suite, beside what it may take: `node scripts/ci-budget.mjs 'npm ci=31' 'npm test=470' ... 'whole run=900'`
// in the order of the arguments, with the suites of both test commands below them. It prints and never fails: machines that others keep busy are slower.
import { existsSync, readFileSync } from 'node:fs';

/** Seconds on two cores that nothing else uses (CONTRIBUTING.md). */
const BUDGETS = { 'npm test': 240, 'npm run test:e2e': 480, 'whole run': 1500 };
/** Where scripts/test.mjs writes what its suites took. */
const SUITES = { 'npm test': '.slipway/test/seconds-unit.json', 'npm run test:e2e': '.slipway/test/seconds-e2e.json' };

/** @param words name=seconds of each step */
function lines(words) {
  const steps = words.map((word) => [
    word.slice(0, word.lastIndexOf('=')),
    Number(word.slice(word.lastIndexOf('=') + 1)),
  ]);
  const rows = steps.flatMap(([name, seconds]) => [
    [name, seconds],
    ...Object.entries(suitesOf(name)).map(([suite, took]) => [`  ${suite}`, took]),
  ]);
  return ['suite                             seconds  budget', ...rows.map(([name, seconds]) => row(name, seconds))];
}

function row(name, seconds) {
  const budget = BUDGETS[name];
  const end = budget === undefined ? '' : `${String(budget).padStart(8)}${seconds > budget ? '  exceeded' : ''}`;
  return `${name.padEnd(32)}${String(Math.round(seconds)).padStart(9)}${end}`;
}

const suitesOf = (name) => (existsSync(SUITES[name] ?? '') ? JSON.parse(readFileSync(SUITES[name], 'utf8')) : {});

if (process.argv[1] === import.meta.filename) process.stdout.write(`\n${lines(process.argv.slice(2)).join('\n')}\n`);
