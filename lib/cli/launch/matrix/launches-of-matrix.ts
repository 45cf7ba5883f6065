import type { Descriptor } from '../../../core/config/descriptor';
import { hasErrors } from '../../../core/config/issue';
import { runIdAt } from '../../../core/job/plan';
import { refuseUnsupported } from '../../../core/rules/model/support';
import type { ComparedRun } from '../../../report/compare/compared-run';
import { ask } from '../../ask';
import { preflightRun } from '../../environment/preflight';
import { EXIT, Refusal, UsageError } from '../../exit';
import { checkRunFile, type GivenFile } from '../../inputs';
import { comparisonText } from '../../runs/reports/comparison-text';
import { waitForAll } from '../../runs/wait';
import { json, type Terminal } from '../../terminal';
import { confirmCost } from '../confirm';
import type { LaunchOptions } from '../launch';
import { type LaunchedFile, submit } from '../submit';
import { compareRuns, type Launched } from './compare-runs';
import { earlyStop } from './early-stop';
import { type MatrixCell, matrixCells } from './matrix';
import { parseStopRule, type StopRule } from './stop-rule';

/** One run of the comparison, after its checks. */
type Candidate = MatrixCell & Pick<LaunchedFile, 'checked'>;

/** The runs of a comparison, and the rule for stopping some of them early. */
interface Comparison {
  group: string;
  launched: readonly Launched[];
  rule?: StopRule;
}

/**
 * `slipway launch FILE --matrix path=a,b,c`: one run per combination. All are checked before the first is submitted, one confirmation
 * covers all of them, and each joins the queue separately; with `--wait` the results are compared at the end.
 */
export async function launchMatrix(
  source: GivenFile,
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
  if (other) throw new UsageError(`--matrix: must not be used with ${other}, got both; use --set for one of its runs`);
  const rule = options.stopWhen === undefined ? undefined : parseStopRule(options.stopWhen);
  const group = runIdAt('matrix', new Date());
  const candidates = checkAll(source, descriptor, options, group);
  for (const { label, checked } of candidates) {
    terminal.err(`\n${label}`);
    await preflightRun(checked.run, descriptor, terminal);
    await confirmCost(checked.run, descriptor, true, terminal);
  }
  if (!options.yes) await ask(`Launch ${candidates.length} runs?`);
  const launched = await submitAll(candidates, { file: source.file, descriptor }, options, terminal);
  if (!options.wait) return print({ matrix: group, runs: launched }, launched, options, terminal);
  return followMatrix({ group, launched, rule }, descriptor, options, terminal);
}

/** Waits for all runs, and prints the comparison of their results; a run that the rule stopped is not a failure. */
async function followMatrix(
  { group, launched, rule }: Comparison,
  descriptor: Descriptor,
  options: LaunchOptions,
  terminal: Terminal,
): Promise<number> {
  const early = rule && earlyStop(rule, descriptor, terminal);
  const runIds = launched.map(({ runId }) => runId);
  const ended = await waitForAll(descriptor, runIds, terminal, early?.observe);
  const rows = await compareRuns(descriptor, launched, ended);
  const isStopped = (runId: string) => early?.stopped.has(runId) ?? false;
  const results = early ? byLoss(rows).map((row) => ({ ...row, stoppedEarly: isStopped(row.runId) })) : rows;
  if (options.json) terminal.out(json({ matrix: group, runs: results }));
  else terminal.out(comparisonText(results));
  const isFine = ({ runId, state }: ComparedRun) => state === 'completed' || (state === 'stopped' && isStopped(runId));
  return rows.every(isFine) ? EXIT.done : EXIT.runFailed;
}

/** Lowest loss first; stopped runs come after the others. */
const byLoss = (rows: readonly ComparedRun[]): ComparedRun[] => {
  const rank = ({ state, loss }: ComparedRun) => (state === 'completed' ? 0 : 1e9) + (loss ?? 1e8);
  return [...rows].sort((a, b) => rank(a) - rank(b));
};

/** An issue in any of the runs rejects all: an incomplete comparison is not useful. */
function checkAll(source: GivenFile, descriptor: Descriptor, options: LaunchOptions, group: string): Candidate[] {
  const cells = matrixCells(options.matrix ?? []);
  const checked = cells.map((cell) => {
    const set = [...(options.set ?? []), ...cell.set, `tags.matrix=${group}`];
    return { ...cell, set, checked: checkRunFile(source, { ...options, set }, descriptor) };
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
  candidates: readonly Candidate[],
  place: Pick<LaunchedFile, 'file' | 'descriptor'>,
  options: LaunchOptions,
  terminal: Terminal,
): Promise<Launched[]> {
  const launched: Launched[] = [];
  for (const { label, set, checked } of candidates) {
    const started = await submit({ checked, ...place }, { ...options, set, acceptsUnknownPrice: false }, terminal);
    terminal.err(`${started.runId}: ${started.state} (${label})`);
    const { runId, state, queuePosition } = started;
    launched.push({ label, set, runId, state, queuePosition });
  }
  return launched;
}

function print(document: unknown, launched: readonly Launched[], options: LaunchOptions, terminal: Terminal): number {
  if (options.json) terminal.out(json(document));
  else terminal.err(`${launched.length} runs; slipway list to show them, slipway status RUN --wait to follow one`);
  return EXIT.done;
}
