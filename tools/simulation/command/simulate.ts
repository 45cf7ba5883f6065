import path from 'node:path';
import pc from 'picocolors';
import { EXIT, Refusal, UsageError } from '../../../lib/cli/exit';
import { readText } from '../../../lib/cli/inputs';
import { writePage } from '../../../lib/cli/page-file';
import { issueLine, json, type Terminal } from '../../../lib/cli/terminal';
import { textTable } from '../../../lib/core/config/formats/plain-text';
import { hasErrors, type Issue } from '../../../lib/core/config/issue';
import { isEnvironmentFile, isRunFile } from '../../../lib/core/config/load';
import { orDash, usd } from '../../../lib/report/page/format';
import { loadScenario, playHistories, type RunResult, type Scenario, type SimulationResult } from '..';
import { readerBeside } from '../reader-beside';
import type { Part } from './histories-worker';
import { playInProcesses } from './play-histories';

/** Options of `npm run simulate`. */
export interface SimulateOptions {
  seed?: string;
  histories?: string;
  json?: boolean;
  html?: string;
}

/** `npm run simulate -- SCENARIO`: plays the control plane's functions on a virtual clock. Exit code 1 when an invariant is violated. */
export async function simulate(file: string, options: SimulateOptions, terminal: Terminal): Promise<number> {
  const seed = wholeNumber('--seed', options.seed, 0) ?? 1;
  const histories = wholeNumber('--histories', options.histories, 1);
  const text = readText(file);
  const read = readerBeside(file);
  const { value, issues, positionOf } = loadScenario(text, read);
  if (!value || hasErrors(issues)) {
    refuseOthers(file, text, issues);
    if (options.json) throw new Refusal(issues);
    return refuse(issues, file, positionOf, terminal);
  }
  const result = await playAll({ file, text, seed, histories }, value, options.html, terminal);
  terminal.out(options.json ? json(result) : simulationText(result));
  return result.ok ? EXIT.done : EXIT.refused;
}

/** Reports a missing file or a file of another kind with one sentence, instead of one issue per option. */
function refuseOthers(file: string, text: string, issues: readonly Issue[]): void {
  const kind = isRunFile(text) ? 'a run file' : isEnvironmentFile(text) ? 'an environment file' : undefined;
  const isAbout = (path: string) => issues.some((found) => found.path === path);
  if (kind && isAbout('name') && isAbout('schema'))
    throw new UsageError(`${file}: must be a scenario, got ${kind}; write one whose runs: name it (docs/simulate.md)`);
}

/** Plays a scenario or its histories, and writes the page of the one shown. */
async function playAll(part: Part, scenario: Scenario, html: string | undefined, terminal: Terminal) {
  const { file, seed, histories } = part;
  const read = readerBeside(file);
  // The page needs the world of the history shown, which the result of another process does not contain.
  const elsewhere = html && histories === undefined ? undefined : await playInProcesses(part, scenario, terminal);
  if (elsewhere && !html) return elsewhere;
  const options = elsewhere ? { seed: elsewhere.seed, shrinks: false } : { seed, histories };
  const { result, world } = await playHistories(scenario, read, options);
  const shown = elsewhere ?? result;
  if (html) {
    const { renderSimulation } = await import('../page/render.js');
    const { pageOf } = await import('../page/page.js');
    writePage(html, renderSimulation(pageOf(world, shown, path.basename(file))), terminal);
  }
  return shown;
}

function refuse(
  issues: readonly Issue[],
  file: string,
  positionOf: Parameters<typeof issueLine>[2],
  terminal: Terminal,
): number {
  for (const found of issues) terminal.err(issueLine(found, file, positionOf));
  return EXIT.refused;
}

function wholeNumber(option: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= least) return number;
  throw new UsageError(
    `${option}: must be a whole number of at least ${least}, got ${text}; write for example ${option} 7`,
  );
}

/** Text about a simulation: its runs, the notices sent, and the invariants. */
export function simulationText(result: SimulationResult): string {
  const { histories, shrunk } = result;
  const notices = result.runs.flatMap((run) => run.notices).sort((a, b) => a.at - b.at);
  return [
    ...(histories
      ? [
          `${histories.played} histories played, ${histories.failed} failed${histories.firstFailedSeed === null ? '' : `, the first with --seed ${histories.firstFailedSeed}`}`,
          '',
        ]
      : []),
    textTable(
      ['run', 'state', 'attempts', 'waited', 'trained', 'kept', 'lost', 'billed', 'booked', 'reason'],
      result.runs.map(runCells),
    ),
    '',
    ...notices.map(({ at, text }) => `${hours(at).padStart(9)}  ${text}`),
    ...(notices.length > 0 ? [''] : []),
    ...result.invariants.map(({ name, holds, at, evidence }) =>
      holds ? `${pc.green('holds')}  ${name}` : `${pc.red('broken')} ${name} at ${hours(at ?? 0)}: ${evidence ?? ''}`,
    ),
    '',
    `seed ${result.seed}, ${hours(result.until)}; ${result.ticks.count} ticks, half within ${result.ticks.p50Seconds} s and 99 % within ${result.ticks.p99Seconds} s; ${result.deadLetters} dead letters`,
    ...(shrunk === undefined ? [] : ['', 'the shortest scenario that still fails:', '', shrunk.trimEnd()]),
  ].join('\n');
}

const hours = (seconds: number): string => `${(seconds / 3600).toFixed(2)} h`;

function runCells(run: RunResult): string[] {
  return [
    run.id,
    run.state,
    String(run.attempts.length),
    hours(run.waitedSeconds),
    hours(run.trainedSeconds),
    String(run.keptSteps),
    String(run.lostSteps),
    usd(run.billedUsd),
    orDash(run.bookedUsd, usd),
    run.reason.length > 60 ? `${run.reason.slice(0, 57)}...` : run.reason,
  ];
}
