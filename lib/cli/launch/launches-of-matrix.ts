import { runIdAt } from '../../job/plan';
import { refuseUnsupported } from '../../rules/model/support';
import type { Descriptor } from '../../spec/descriptor';
import { hasErrors } from '../../spec/issue';
import { preflightRun } from '../environment/preflight';
import { EXIT, Refusal, UsageError } from '../exit';
import { type CheckedRun, checkRunFile } from '../inputs';
import { waitForAll } from '../runs/wait';
import { json, type Terminal } from '../terminal';
import { compareRuns, type Launched } from './compare-runs';
import { ask, confirmCost } from './confirm';
import type { LaunchOptions } from './launch';
import { type MatrixCell, matrixCells } from './matrix';
import { submit } from './submit';

/** One run of the comparison, checked. */
interface Candidate extends MatrixCell {
  checked: CheckedRun & { run: NonNullable<CheckedRun['run']> };
}

/**
 * `slipway launch FILE --matrix path=a,b,c`: one run per combination. All are checked before the first is submitted, one question
 * covers them all, and each joins the queue by itself; with `--wait` the comparison of their results closes it.
 */
export async function launchMatrix(
  file: string,
  descriptor: Descriptor,
  options: LaunchOptions,
  terminal: Terminal,
): Promise<number> {
  const other = options.at
    ? '--at'
    : options.dryRun
      ? '--dry-run'
      : options.runId
        ? '--run-id'
        : options.clientRequestId && '--client-request-id';
  if (other) throw new UsageError(`--matrix: must go without ${other}, got both; use --set for one of its runs`);
  const group = runIdAt('matrix', new Date());
  const candidates = checkAll(file, descriptor, options, group);
  for (const { label, checked } of candidates) {
    terminal.err(`\n${label}`);
    await preflightRun(checked.run, descriptor, terminal);
    await confirmCost(checked.run, descriptor, true, terminal);
  }
  if (!options.yes) await ask(`Launch ${candidates.length} runs?`);
  const launched = await submitAll(file, candidates, descriptor, options, terminal);
  if (!options.wait) return print({ matrix: group, runs: launched }, launched, options, terminal);
  const ended = await waitForAll(
    descriptor,
    launched.map(({ runId }) => runId),
    terminal,
  );
  const comparison = await compareRuns(descriptor, launched, ended);
  if (options.json) terminal.out(json({ matrix: group, runs: comparison.rows }));
  else terminal.out(comparison.text);
  return comparison.rows.every(({ state }) => state === 'completed') ? EXIT.done : EXIT.runFailed;
}

/** What is wrong with any of them refuses all: a comparison with a hole is none. */
function checkAll(file: string, descriptor: Descriptor, options: LaunchOptions, group: string): Candidate[] {
  const cells = matrixCells(options.matrix ?? []);
  const checked = cells.map((cell) => {
    const set = [...(options.set ?? []), ...cell.set, `tags.matrix=${group}`];
    return { ...cell, set, checked: checkRunFile(file, { ...options, set }, descriptor) };
  });
  const issues = checked.flatMap(({ label, checked: { issues: found } }) =>
    refuseUnsupported(found).map((i) => ({ ...i, message: `${label}: ${i.message}` })),
  );
  if (hasErrors(issues)) throw new Refusal(issues.filter(({ level }) => level === 'error'));
  return checked.flatMap(({ checked: { run, ...rest }, ...cell }) =>
    run ? { ...cell, checked: { run, ...rest } } : [],
  );
}

async function submitAll(
  file: string,
  candidates: readonly Candidate[],
  descriptor: Descriptor,
  options: LaunchOptions,
  terminal: Terminal,
): Promise<Launched[]> {
  const launched: Launched[] = [];
  for (const { label, set, checked } of candidates) {
    const started = await submit(checked, file, descriptor, { ...options, set, acceptsUnknownPrice: false }, terminal);
    terminal.err(`${started.runId}: ${started.state} (${label})`);
    const { runId, state, queuePosition } = started;
    launched.push({ label, set, runId, state, queuePosition });
  }
  return launched;
}

function print(document: unknown, launched: readonly Launched[], options: LaunchOptions, terminal: Terminal): number {
  if (options.json) terminal.out(json(document));
  else terminal.err(`${launched.length} runs; slipway list shows them, slipway status RUN --wait follows one`);
  return EXIT.done;
}
