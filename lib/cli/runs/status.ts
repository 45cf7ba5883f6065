import pc from 'picocolors';
import { jobConsoleUrl } from '../../core/catalog/regions';
import type { Descriptor } from '../../core/config/descriptor';
import { plainLines } from '../../core/config/formats/plain-text';
import type { AttemptAnswer, StatusAnswer } from '../../core/contracts/control';
import { runCommand } from '../../core/contracts/names';
import { findDescriptor } from '../environment/environment';
import { EXIT, UsageError } from '../exit';
import { json, type Terminal } from '../terminal';
import type { ChartOptions } from './chart';
import { readStatus, withoutOk } from './control-client';
import { tagsText } from './list';
import type { EventOptions } from './logs/logs';
import { failureText, missingProgress, progressText } from './run-text';
import { waitForEnd } from './wait';

export interface StatusOptions extends ChartOptions, EventOptions {
  wait?: boolean;
  chart?: boolean;
  events?: boolean;
  lineage?: boolean;
  note?: string;
}

export async function status(runId: string, options: StatusOptions, terminal: Terminal): Promise<number> {
  if (runId.includes('://'))
    throw new UsageError(`status: must name a run, got ${runId}; add --lineage for the origin of a location`);
  const descriptor = await findDescriptor(options);
  if (options.wait) return waitForEnd(descriptor, runId, options, terminal);
  const answer = await readStatus(descriptor, runId);
  if (options.json) terminal.out(json(withoutOk(answer)));
  else {
    const lines = [statusText(plainLines(answer), descriptor), ...(await failureText(descriptor, answer))];
    terminal.out(lines.join('\n'));
  }
  return EXIT.done;
}

const number = (value: number | null, digits = 0) => (value === null ? '-' : value.toFixed(digits));

export function statusText(run: StatusAnswer, descriptor: Descriptor, now = Date.now()): string {
  const position = run.queuePosition === null ? '' : `, position ${run.queuePosition} in the queue`;
  const attempts = run.attempts.map(
    (a) =>
      `${a.trainingJobName}  ${a.status} (${a.secondaryStatus})  ${stepsText(a)}${a.reason ? `  ${a.reason}` : ''}`,
  );
  const details = [
    progressText(run),
    missingProgress(run, now),
    run.note,
    run.tags && `tags ${tagsText(run)}`,
    run.after && `after ${run.after.join(', ')}`,
    run.preemptible && 'preemptible',
    run.handOver &&
      `requested to save and exit at ${run.handOver.at.slice(11, 19)} UTC${run.handOver.isRead ? ', and its driver has read it' : ''}`,
    run.warmPool && poolText(run.runId, run.warmPool, descriptor),
    ...attempts,
    ...links(run, descriptor),
  ].flatMap((line) => (line ? [`  ${line}`] : []));
  return [
    `${pc.bold(run.runId)}  ${run.state}${position}${run.reason ? `: ${run.reason}` : ''}`,
    `step ${number(run.step)}${run.stepAt ? ` (${run.stepAt.slice(11, 19)} UTC)` : ''}   committed ${number(run.committedStep)}   loss ${number(run.loss, 4)}   goodput ${run.goodput === null ? '-' : `${(100 * run.goodput).toFixed(1)} %`}   spend ${run.spendUsd === null ? '-' : `$${run.spendUsd.toFixed(2)}`}${sparesText(run)}`,
    ...details,
  ].join('\n');
}

/** `steps 1-60`; `-` when no step was seen. */
export const stepsText = ({ firstStep, lastStep }: Pick<AttemptAnswer, 'firstStep' | 'lastStep'>): string => {
  if (lastStep === null) return 'steps -';
  return firstStep === null ? `up to step ${lastStep}` : `steps ${firstStep}-${lastStep}`;
};

/** The warm pool that the last job left, and how to release it. */
function poolText(runId: string, pool: NonNullable<StatusAnswer['warmPool']>, descriptor: Descriptor): string {
  const price = pool.usdPerHour === null ? '' : ` at $${pool.usdPerHour.toFixed(2)} per hour`;
  return `warm pool kept until ${pool.until.slice(0, 19)}Z${price}, unless another job reuses it; ${runCommand('stop', runId, descriptor, '--release-pool')} to end it`;
}

const sparesText = ({ spareInstances: spares }: StatusAnswer): string =>
  spares ? `   spare hosts ${number(spares.left)} of ${spares.of}` : '';

/**
 * Links for more details. Logs of jobs are read through the control function: only the platform team and auditors can see them in the
 * console.
 */
function links({ runId, attempts }: StatusAnswer, descriptor: Descriptor): string[] {
  const last = attempts.at(-1);
  if (!last) return [];
  return [
    `job   ${jobConsoleUrl(descriptor.region, 'training', last.trainingJobName)}`,
    `logs  ${runCommand('logs', runId, descriptor)}`,
  ];
}
