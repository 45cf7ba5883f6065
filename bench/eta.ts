// `npm run bench:eta [-- RUNS SEED]`: how far the end that `slipway status` predicts is from the end of a simulated run, and how often its
// 80 % interval holds it. Prints the table of docs/simulate.md; --write puts it there.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { cpuUsage, stdout } from 'node:process';
import { Random } from '../tools/simulation/core/random';
import { etaRows, forecastRuns, POPULATIONS } from './eta-runs';

const MARKS = ['<!-- generated: eta -->', '<!-- end: eta -->'] as const;
const PAGE = path.join(__dirname, '../docs/simulate.md');
const words = process.argv.slice(2);
const [runs = 200, seed = 20261122] = words.filter((word) => word !== '--write').map(Number);

async function table(): Promise<string> {
  const rows: string[] = [];
  for (const population of POPULATIONS)
    rows.push(...etaRows(await forecastRuns(new Random(seed), runs, population), population));
  return [
    `Seed ${seed}, ${runs} runs of each kind, ten in an environment. Errors and widths are shares of the time that is left.`,
    '',
    '| runs | look | looks | half of them miss by less than | nine of ten miss by less than | 80 % interval holds the end | half of the intervals are narrower than |',
    '|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

async function main(): Promise<void> {
  const began = cpuUsage();
  const text = await table();
  const { user, system } = cpuUsage(began);
  stdout.write(`${text}\n\n${((user + system) / 1e6).toFixed(0)} s of CPU\n`);
  if (!words.includes('--write')) return;
  const page = readFileSync(PAGE, 'utf8');
  const [from, to] = [page.indexOf(MARKS[0]) + MARKS[0].length, page.indexOf(MARKS[1])];
  if (from < MARKS[0].length || to < from) throw new Error(`${PAGE}: must have ${MARKS.join(' and ')}, got none`);
  writeFileSync(PAGE, `${page.slice(0, from)}\n${text}\n${page.slice(to)}`);
}

void main();
