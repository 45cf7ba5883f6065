import type { Descriptor } from '../../../core/config/descriptor';
import { hasErrors } from '../../../core/config/issue';
import { parsePath } from '../../../core/config/reading/overrides';
import { hasEnded, type StartAnswer, type StatusAnswer } from '../../../core/contracts/control';
import { runCommand } from '../../../core/contracts/names';
import { runIdAt } from '../../../core/job/plan';
import { type ComparedRun, measured } from '../../../report/compare/diff-runs';
import { assembleReport } from '../../../report/read/assemble';
import { ask } from '../../ask';
import { preflightRun } from '../../environment/preflight';
import { EXIT, Refusal, ServiceError, UsageError } from '../../exit';
import { checkRunFile, type GivenFile } from '../../inputs';
import { callControl } from '../../runs/control-client';
import { comparisonText } from '../../runs/reports/report';
import { readSources } from '../../runs/reports/report-sources';
import { waitForAll } from '../../runs/wait';
import { issueLine, json, type Terminal } from '../../terminal';
import type { LaunchOptions } from '../launch';
import { confirmCost, type LaunchedFile, submit } from '../submit';
import { isLoser, parseStopRule, type Sample, type StopRule, sampleOf } from './stop-rule';

/** One run of a comparison: the options in which it differs from the others. */
interface MatrixCell {
  /** The label, for example `training.microBatchSize=2 distribution.parameters.shard_degree=8`. */
  label: string;
  set: string[];
}

/** More runs than this are probably a mistake. */
const MAX_RUNS = 32;

/**
 * All combinations of the values of `--matrix path=a,b,c`; a comma inside brackets or quotes belongs to its value.
 * @throws UsageError for an option that is not a path with two or more values, and for more than 32 runs
 */
export function matrixCells(options: readonly string[]): MatrixCell[] {
  const axes = options.map(axis);
  const repeated = axes.map(({ path }) => path).find((path, i, all) => all.indexOf(path) !== i);
  if (repeated) throw wrong(repeated, 'must contain each path once', 'write all its values in one --matrix');
  const sets = axes.reduce<string[][]>(
    (cells, { path, values }) => cells.flatMap((cell) => values.map((value) => [...cell, `${path}=${value}`])),
    [[]],
  );
  if (sets.length > MAX_RUNS)
    throw wrong(`${sets.length} runs`, `must give at most ${MAX_RUNS} runs`, 'use fewer values');
  return sets.map((set) => ({ label: set.join(' '), set }));
}

function axis(option: string): { path: string; values: string[] } {
  const split = option.indexOf('=');
  const path = option.slice(0, Math.max(split, 0)).trim();
  const values = splitValues(option.slice(split + 1));
  if (!parsePath(path) || values.length < 2 || values.includes(''))
    throw wrong(option, 'must be a path and two or more values', 'write --matrix training.microBatchSize=1,2,4');
  if (new Set(values).size < values.length)
    throw wrong(option, 'must contain each value once', 'remove the repetition');
  return { path, values };
}

const wrong = (got: string, must: string, fix: string) => new UsageError(`--matrix: ${must}, got ${got}; ${fix}`);

/** Text in quotes, which begin where YAML has them, in front of a value; otherwise single characters. */
const TOKENS = /(?<=(?:^|[[{,:])\s*)(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*')|[\s\S]/g;

/** Splits at commas outside of brackets, braces and quotes. */
function splitValues(text: string): string[] {
  const parts = [''];
  let depth = 0;
  for (const token of text.match(TOKENS) ?? []) {
    if (token === '[' || token === '{') depth += 1;
    if (token === ']' || token === '}') depth = Math.max(0, depth - 1);
    if (token === ',' && depth === 0) parts.push('');
    else parts[parts.length - 1] += token;
  }
  return parts.map((part) => part.trim());
}

/** One run of the comparison, after its checks. */
type Candidate = MatrixCell & Pick<LaunchedFile, 'checked'>;

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
  if (options.stopWhen !== undefined && !options.wait)
    throw new UsageError('--stop-when: must be used with --wait, which compares the runs, got none; add --wait');
  const rule = options.stopWhen === undefined ? undefined : parseStopRule(options.stopWhen);
  const group = runIdAt('matrix', new Date());
  const candidates = checkAll(source, descriptor, options, group);
  for (const { label, checked } of candidates) {
    terminal.err(`\n${label}`);
    for (const found of checked.issues) terminal.err(issueLine(found, source.file, checked.positionOf));
    await preflightRun(checked.run, descriptor, terminal);
    await confirmCost(checked.run, descriptor, true, terminal);
  }
  if (!options.yes) await ask(`Launch ${candidates.length} runs?`);
  const launched = await submitAll(candidates, { file: source.file, descriptor }, options, terminal);
  if (options.wait) return followMatrix({ group, launched, rule }, descriptor, options, terminal);
  if (options.json) terminal.out(json({ matrix: group, runs: launched }));
  else terminal.err(`${launched.length} runs; ${runCommand('status', 'RUN', descriptor, '--wait')} to follow one`);
  return EXIT.done;
}

/** Waits for all runs, and prints the comparison of their results; a run that the rule stopped is not a failure. */
async function followMatrix(
  { group, launched, rule }: { group: string; launched: readonly Launched[]; rule?: StopRule },
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
    found.map((i) => ({ ...i, message: `${label}: ${i.message}` })),
  );
  if (hasErrors(issues)) throw new Refusal(issues.filter(({ level }) => level === 'error'));
  return checked.flatMap(({ checked: { run, ...rest }, ...cell }) =>
    run ? { ...cell, checked: { run, ...rest } } : [],
  );
}

/** @throws Refusal, which names the runs that were submitted before */
async function submitAll(
  candidates: readonly Candidate[],
  place: Pick<LaunchedFile, 'file' | 'descriptor'>,
  options: LaunchOptions,
  terminal: Terminal,
): Promise<Launched[]> {
  const launched: Launched[] = [];
  for (const { label, set, checked } of candidates) {
    const start = submit({ checked, ...place }, { ...options, set, acceptsUnknownPrice: false }, terminal);
    const started = await start.catch((error: unknown) => {
      throw error instanceof Refusal ? new Refusal(error.issues, { ...error.details, runs: launched }) : error;
    });
    terminal.err(`${started.runId}: ${started.state} (${label})`);
    const { runId, state, queuePosition } = started;
    launched.push({ label, set, runId, state, queuePosition });
  }
  return launched;
}

type Launched = MatrixCell & Pick<StartAnswer, 'runId' | 'state' | 'queuePosition'>;

/** Results side by side, the fastest first. */
async function compareRuns(
  descriptor: Descriptor,
  launched: readonly Launched[],
  ended: readonly StatusAnswer[],
): Promise<ComparedRun[]> {
  const rows: ComparedRun[] = [];
  for (const [i, { label, set, runId }] of launched.entries()) {
    const steps = assembleReport(await readSources(descriptor, runId, { overrides: set })).steps ?? [];
    const { state = 'unknown', step = null, goodput = null, spendUsd = null } = ended[i] ?? {};
    rows.push({ label, runId, state, step, goodput, spendUsd, ...measured(steps) });
  }
  return rows.sort((a, b) => (b.tokensPerSecondPerGpu ?? 0) - (a.tokensPerSecondPerGpu ?? 0));
}

/**
 * Observes the runs of a sweep and stops those that the rule selects, like `slipway stop`: each run saves a checkpoint and may be resumed.
 */
export function earlyStop(rule: StopRule, descriptor: Descriptor, terminal: Terminal) {
  const samples = new Map<string, Sample[]>();
  const stopped = new Set<string>();
  const observe = async (status: StatusAnswer): Promise<void> => {
    const { runId } = status;
    const own = samples.get(runId) ?? [];
    samples.set(runId, own);
    const sample = sampleOf(rule, status);
    // The same heartbeat may be seen several times; after a restart steps are repeated.
    if (sample && sample.step !== own.at(-1)?.step) own.push(sample);
    if (hasEnded(status) || status.desiredState === 'stop' || stopped.has(runId)) return;
    const others = [...samples].flatMap(([id, found]) => (id === runId ? [] : [found]));
    if (!isLoser(rule, own, others)) return;
    if (await stop(descriptor, runId, rule, terminal)) stopped.add(runId);
  };
  return { observe, stopped };
}

/** A call that fails is repeated with the next status. */
async function stop(descriptor: Descriptor, runId: string, { text }: StopRule, terminal: Terminal): Promise<boolean> {
  try {
    await callControl(descriptor, { action: 'stop', runId, reason: `--stop-when ${text}`.slice(0, 512) });
    terminal.err(`${runId}: stopped early: ${text}; run ${runCommand('resume', runId, descriptor)} to continue it`);
    return true;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return false;
  }
}
