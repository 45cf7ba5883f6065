import { orList } from '../../core/config/issue';
import { MAX_NOTE } from '../../core/contracts/control-requests';
import { runCommand } from '../../core/contracts/names';
import { elasticSizes } from '../../core/rules/compute/hosts';
import { modeOf } from '../command-line';
import { findDescriptor } from '../environment/environment';
import { preflightRun } from '../environment/preflight';
import { EXIT, requireText, UsageError } from '../exit';
import { timeOrSpan } from '../given-time';
import { withS3Config } from '../hub/fetched';
import { type CommonOptions, checkRead, type GivenFile, readGiven, readRunFile, requireChecked } from '../inputs';
import { withoutOk } from '../runs/control-client';
import { waitForEnd } from '../runs/wait';
import { issueLine, json, type Terminal } from '../terminal';
import { dryRun, writeDryRun } from './dry-run';
import { confirmCost, type LaunchedFile, submit } from './submit';

export interface LaunchOptions extends CommonOptions {
  dryRun?: boolean;
  out?: string;
  runId?: string;
  /** Repeating the same id finds the run that the first launch created. */
  clientRequestId?: string;
  /** ISO time, or a duration from now. */
  at?: string;
  /** Run ids, and `latest:<name>`. */
  after?: string[];
  preemptible?: boolean;
  note?: string;
  yes?: boolean;
  wait?: boolean;
  /** With `wait`: false for the states of the run alone. @default true */
  logs?: boolean;
  /** `path=a,b,c`: one run per combination of values. */
  matrix?: string[];
  /** Fetches what the run names and the team lacks first. */
  fetch?: boolean;
  /** With `fetch`. @default python3 */
  python?: string;
  /** Rule that stops runs of the matrix early: `loss > best * 1.1 after 500 steps`. */
  stopWhen?: string;
  /** A small run with the same code and strategy: true, or where to run it. */
  smoke?: true | string;
}

/** Latest start for `--at`, days from now: prices and quotas are checked at launch. */
const MAX_DAYS_AHEAD = 90;

/** The start time for `--at 6h` or an ISO time, as an ISO time. */
export function startTime(text: string | undefined, now: number): string | undefined {
  if (text === undefined) return undefined;
  const at = timeOrSpan(text, now, 1);
  if (at >= now && at <= now + MAX_DAYS_AHEAD * 86_400_000) return new Date(at).toISOString();
  throw new UsageError(
    `--at: must be a time of the next ${MAX_DAYS_AHEAD} days, such as 2026-12-01T18:00Z, or a span such as 6h, got ${text}; write one of them`,
  );
}

/** The format that the control function accepts (lib/core/contracts/control). */
const CLIENT_REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** `slipway launch FILE`: validate, preflight, show the cost, ask, upload the code, submit. */
export async function launch(file: string, given: LaunchOptions, terminal: Terminal): Promise<number> {
  requireIds(given);
  const one = ['at', 'runId', 'clientRequestId', 'fetch'] as const;
  const mode = modeOf(given, {
    '': [...one, 'wait'],
    dryRun: [...one, 'out'],
    smoke: ['runId', 'wait'],
    matrix: ['wait', 'stopWhen'],
  });
  if (given.logs === false && !given.wait)
    throw new UsageError('--no-logs: must be used with --wait, got --no-logs alone; add --wait');
  const startAt = startTime(given.at, Date.now());
  const source = readGiven(file);
  const overridden = withFileOptions(source, given);
  const { options: completed, fetch } = given.fetch
    ? await (await import('../hub/fetch.js')).fetchFirst(source, overridden, terminal)
    : { options: overridden };
  const options = await withS3Config(source, completed);
  const read = readRunFile(source, options);
  // Without --environment, the run file names it: its errors that need no environment are reported before any call to AWS.
  const named = options.environment ? undefined : requireChecked(checkRead(read, options)).run.environment;
  const descriptor = await findDescriptor(options, named);
  if (mode === 'smoke') return (await import('./smoke.js')).launchSmoke(source, descriptor, options, terminal);
  if (mode === 'matrix')
    return (await import('./matrix/matrix.js')).launchMatrix(source, descriptor, options, terminal);
  const checked = requireChecked(checkRead(read, options, descriptor));
  for (const found of checked.issues) terminal.err(issueLine(found, file, checked.positionOf));
  const launched = { checked, file, descriptor };
  if (mode === 'dryRun') return printDryRun(launched, options, terminal);
  return submitRun(launched, fetch, { ...options, startAt }, terminal);
}

/** Converts options that set options of the run file to `--set`. Entries of `after` in the file are kept. */
function withFileOptions(source: GivenFile, given: LaunchOptions): LaunchOptions {
  const { after, preemptible, set = [] } = given;
  if (!after && !preemptible) return given;
  const written = after ? (readRunFile(source, given).loaded.value?.after ?? []) : [];
  return {
    ...given,
    set: [
      ...set,
      ...(after ? [`after=${JSON.stringify([...new Set([...written, ...after])])}`] : []),
      ...(preemptible ? ['preemptible=true'] : []),
    ],
  };
}

/** Allowed values of `--run-id`: the name of a job has no room for more. */
const RUN_ID = /^[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?$/;

/** Checks ids that a person chose. */
function requireIds({ runId, clientRequestId, note }: LaunchOptions): void {
  requireText('--note', note, MAX_NOTE);
  if (runId !== undefined && !RUN_ID.test(runId))
    throw new UsageError(
      `--run-id: must be 1-45 lower-case letters, digits or inner hyphens, got ${runId}; omit it to generate one`,
    );
  if (clientRequestId !== undefined && !CLIENT_REQUEST_ID.test(clientRequestId))
    throw new UsageError(
      `--client-request-id: must be 1-64 letters, digits, hyphens or underscores, got ${clientRequestId}; use one id per run`,
    );
}

async function printDryRun(
  { checked: { run }, file, descriptor }: LaunchedFile,
  options: LaunchOptions,
  terminal: Terminal,
): Promise<number> {
  const result = await dryRun(run, file, descriptor, options);
  const sizes = elasticSizes(run);
  if (sizes.length > 0)
    terminal.err(
      `compute.instanceCount: an attempt has ${orList(sizes)} instances, depending on available capacity; this is the request for ${run.compute.instanceCount}`,
    );
  terminal.out(json(result.request));
  if (options.out) writeDryRun(result, options.out);
  return EXIT.done;
}

async function submitRun(
  launched: LaunchedFile,
  fetch: LaunchedFile['checked'] | undefined,
  options: LaunchOptions & { startAt?: string },
  terminal: Terminal,
): Promise<number> {
  const { checked, descriptor } = launched;
  await preflightRun(checked.run, descriptor, terminal);
  const acceptsUnknownPrice = await confirmCost(checked.run, descriptor, options.yes ?? false, terminal);
  if (fetch) await startFetch(fetch, launched, options, terminal);
  const answer = withoutOk(await submit(launched, { ...options, acceptsUnknownPrice }, terminal));
  if (!options.wait) {
    if (options.json) terminal.out(json(answer));
    else
      terminal.err(
        `${answer.runId}: ${answer.state}; ${runCommand('status', answer.runId, descriptor, '--wait')} to follow it`,
      );
    return EXIT.done;
  }
  terminal.err(`${answer.runId}: ${answer.state}`);
  return waitForEnd(descriptor, answer.runId, { ...options, logs: options.logs ?? true }, terminal);
}

/** Starts the run that fetches, for which the launched run waits by its ID. */
async function startFetch(
  fetch: LaunchedFile['checked'],
  launched: LaunchedFile,
  { clientRequestId }: Pick<LaunchOptions, 'clientRequestId'>,
  terminal: Terminal,
): Promise<void> {
  const { checked, descriptor } = launched;
  await preflightRun(fetch.run, descriptor, terminal);
  const { runId } = await submit(
    { checked: fetch, file: 'fetch.yaml', descriptor },
    { acceptsUnknownPrice: false, clientRequestId: clientRequestId && `${clientRequestId.slice(0, 58)}-fetch` },
    terminal,
  );
  terminal.err(`${runId}: fetches first`);
  const after = checked.run.after.map((one) => (one === `latest:${fetch.run.name}` ? runId : one));
  checked.overrides.push(`after=${JSON.stringify(after)}`);
}
