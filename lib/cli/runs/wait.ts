import { setTimeout as sleep } from 'node:timers/promises';
import type { Descriptor } from '../../core/config/descriptor';
import { plainLine } from '../../core/config/formats/plain-text';
import { hasEnded, type StatusAnswer } from '../../core/contracts/control';
import { runCommand } from '../../core/contracts/names';
import { EXIT, Interrupted } from '../exit';
import { reportError } from '../report-error';
import { interruptible, json, type Terminal } from '../terminal';
import { attempt, patiently, readStatus, withoutOk } from './control-client';
import { LogTail } from './logs/job-logs';
import { failureText } from './run-text';

export interface WaitOptions {
  json?: boolean;
  /** Whether stdout shows the output of the script as well. @default false */
  logs?: boolean;
}

/** Follows a run until it ends: prints a line per change to stderr, and the last status to stdout. */
export async function waitForEnd(
  descriptor: Descriptor,
  runId: string,
  options: WaitOptions,
  terminal: Terminal,
): Promise<number> {
  const status = await whileInterruptible({ runIds: [runId], descriptor, json: options.json }, terminal, () =>
    follow(
      descriptor,
      runId,
      terminal,
      options.logs && !options.json ? { before: outputOf(descriptor, runId, terminal) } : {},
    ),
  );
  if (options.json) terminal.out(json(status));
  else for (const line of await failureText(descriptor, status)) terminal.err(line);
  return status.state === 'completed' ? EXIT.done : EXIT.runFailed;
}

/** Lines that the driver and the trainer write for programs. */
const MACHINE_LINE = 'slipway {';
/** The last lines of a job arrive after its end. */
const LAST_LINES_SECONDS = 5;

/**
 * Prints what the script has written on the first host since the last observation; a log that cannot be read now is read at the next one.
 */
function outputOf(descriptor: Descriptor, runId: string, terminal: Terminal) {
  const tail = new LogTail(descriptor, { runId, node: '1' });
  const print = async (status: StatusAnswer) => {
    const { value: fresh = [] } = await attempt(() => tail.fresh(status));
    for (const { message } of fresh) if (!message.startsWith(MACHINE_LINE)) terminal.out(plainLine(message));
  };
  return async (status: StatusAnswer): Promise<void> => {
    await print(status);
    if (!hasEnded(status)) return;
    await sleep(1000 * pollSeconds(LAST_LINES_SECONDS));
    await print(status);
  };
}

/**
 * Follows several runs until the last has ended; returns their last statuses in the order of the ids.
 * @param onStatus called with each status
 */
export const waitForAll = (
  descriptor: Descriptor,
  runIds: readonly string[],
  terminal: Terminal,
  onStatus: (status: StatusAnswer) => Promise<void> = async () => undefined,
): Promise<StatusAnswer[]> =>
  whileInterruptible({ runIds, descriptor }, terminal, () =>
    Promise.all(
      runIds.map((runId) =>
        follow(descriptor, runId, terminal, {
          until: async (status) => {
            await onStatus(status);
            return hasEnded(status);
          },
        }),
      ),
    ),
  );

/** Ctrl-C and a request to end end the wait but not the runs, and a message says so. */
function whileInterruptible<T>(
  { runIds, descriptor, json: asJson = false }: { runIds: readonly string[]; descriptor: Descriptor; json?: boolean },
  terminal: Terminal,
  work: () => Promise<T>,
): Promise<T> {
  const onInterrupt = () => {
    const lines = runIds.map(
      (runId) =>
        `${runId}: continues; ${runCommand('status', runId, descriptor, '--wait')} to follow it, ${runCommand('stop', runId, descriptor)} to stop it`,
    );
    for (const line of lines) terminal.err(line);
    const context = { asJson, hasPrinted: false, file: '' };
    if (asJson) reportError(new Interrupted(lines.join('\n')), context, terminal);
    process.exit(EXIT.interrupted);
  };
  return interruptible(onInterrupt, work);
}

/** Seconds between two polls: `SLIPWAY_POLL_SECONDS` if it is a number of at most a day, so that tests and demos need not wait. */
export function pollSeconds(usual: number): number {
  const given = Number.parseFloat(process.env.SLIPWAY_POLL_SECONDS ?? '');
  return given >= 0 && given <= 86_400 ? given : usual;
}

interface FollowOptions {
  /** @default - until the run has ended */
  until?: (status: StatusAnswer) => boolean | Promise<boolean>;
  /** Called with each status before its line is printed. */
  before?: (status: StatusAnswer) => Promise<void>;
}

/** Prints a line for each change, until `until` returns true. */
export async function follow(
  descriptor: Descriptor,
  runId: string,
  terminal: Terminal,
  { until = hasEnded, before }: FollowOptions = {},
): Promise<StatusAnswer> {
  const seconds = pollSeconds(10);
  const what = `waiting for ${runId}`;
  const advice = `the run continues, try ${runCommand('status', runId, descriptor, '--wait')}`;
  for (let printed = ''; ; await sleep(1000 * seconds)) {
    const read = () => readStatus(descriptor, runId);
    const status = withoutOk(await patiently(read, { seconds, what, advice }));
    await before?.(status);
    const line = plainLine(progressLine(status));
    if (line !== printed) terminal.err(line);
    printed = line;
    if (await until(status)) return status;
  }
}

function progressLine(run: StatusAnswer): string {
  const number = run.attempt ?? run.attempts.length;
  const attempt = number > 0 ? `, attempt ${number}` : '';
  const step = run.step === null ? '' : `, step ${run.step}`;
  const committed = run.committedStep === null ? '' : `, committed ${run.committedStep}`;
  return `${run.runId}: ${run.state}${attempt}${step}${committed}${run.reason ? ` (${run.reason})` : ''}`;
}
