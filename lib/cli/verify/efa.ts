import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Descriptor } from '../../core/config/descriptor';
import { type DesiredAnswer, hasEnded, newestAttempt } from '../../core/contracts/control';
import { runCommand } from '../../core/contracts/names';
import { packageRoot } from '../../shared/local/own-package';
import { Refusal } from '../exit';
import { type LaunchOptions, launch } from '../launch/launch';
import { callControl, readStatus } from '../runs/control-client';
import { readAttemptLog } from '../runs/logs/job-logs';
import { follow } from '../runs/wait';
import type { Terminal } from '../terminal';
import type { EfaObservation, HealthEvent } from './account/probes/efa';
import { EFA_SECONDS } from './account/record';

/** The collective of level `efa`: two hosts of the type, the environment's own image, only NCCL. */
const runFile = (instanceType: string) =>
  JSON.stringify({
    name: 'verify-efa',
    code: {
      source: './code',
      entryPoint: 'allgather.py',
      arguments: { collective: 'all_reduce', backends: 'nccl', 'min-bytes': 1 << 20, 'max-bytes': 1 << 30, seconds: 2 },
    },
    compute: { instanceType, instanceCount: 2 },
    checkpoints: { mode: 'none' },
    limits: { maxRuntimeSeconds: EFA_SECONDS, maxAttempts: 1 },
  });

const EVENT = /^slipway (\{.*\})$/;

/** A run through the team's control function, as a researcher would launch it. */
export function efaRun(
  descriptor: Descriptor,
  instanceType: string,
  { id, report }: { id: string; report(text: string): void },
) {
  const runId = `verify-efa-${id}`;
  const progress: Terminal = { out: () => undefined, err: (text) => report(`efa: ${text}`) };
  let launched: Promise<unknown> | undefined;
  return {
    observe: async (): Promise<EfaObservation> => {
      const options = { environment: `${descriptor.name}/${descriptor.team}`, region: descriptor.region, runId };
      launched = launchFrom(instanceType, options, progress);
      await launched;
      await follow(descriptor, runId, progress);
      return observationOf(descriptor, runId, instanceType);
    },
    /** Stops the run if it is live, and waits for its end; returns what could not be stopped. */
    cleanUp: async (): Promise<string[]> => {
      if (!launched) return [];
      await launched.catch(() => undefined);
      return stopped(descriptor, runId, progress);
    },
  };
}

/** Stops a live run and waits for its end; returns texts about what could not be stopped. */
async function stopped(descriptor: Descriptor, runId: string, terminal: Terminal): Promise<string[]> {
  try {
    const status = await readStatus(descriptor, runId).catch(ignoreRefusal);
    if (!status || hasEnded(status)) return [];
    terminal.err('stopping the run');
    await callControl<DesiredAnswer>(descriptor, { action: 'stop', runId, reason: 'slipway verify has ended' });
    await follow(descriptor, runId, terminal);
    return [];
  } catch (error) {
    return [
      `run ${runId}: may still use two instances, ${(error as Error).message}; run ${runCommand('stop', runId, descriptor)}`,
    ];
  }
}

/** The control function rejects a run id that it does not know, which means that the launch was rejected. */
const ignoreRefusal = (error: Error): undefined => {
  if (!(error instanceof Refusal)) throw error;
};

/**
 * Launches the run from a separate folder, because code must be below its run file.
 * @throws Error with the refused issues
 */
async function launchFrom(instanceType: string, options: LaunchOptions, terminal: Terminal): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-verify-'));
  try {
    const example = path.join(packageRoot(), 'runs/scripts/allgather');
    cpSync(path.join(example, 'allgather.py'), path.join(folder, 'code/allgather.py'));
    const file = path.join(folder, 'efa.yaml');
    writeFileSync(file, runFile(instanceType));
    // Without `wait`, which would end this process at Ctrl-C and leave the instances running.
    await launch(file, { ...options, yes: true }, terminal);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new Error(`the launch was rejected: ${error.issues.map(({ message }) => message).join('; ')}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Observations from the driver's events of the last attempt. */
async function observationOf(descriptor: Descriptor, runId: string, instanceType: string): Promise<EfaObservation> {
  const run = await readStatus(descriptor, runId);
  const attempt = newestAttempt(run);
  const lines = attempt > 0 ? await readAttemptLog(descriptor, { runId, attempt }) : [];
  const events = lines.flatMap(({ message }) => {
    const [, text] = EVENT.exec(message) ?? [];
    return text ? [JSON.parse(text) as Record<string, unknown>] : [];
  });
  return {
    instanceType,
    state: `${run.state}${run.reason ? ` (${run.reason})` : ''}`,
    efa: events.filter(({ event }) => event === 'efa').at(-1) as EfaObservation['efa'],
    inventory: events.filter(({ event }) => event === 'inventory'),
    health: events.flatMap((event) => (event.event === 'health' ? [event as unknown as HealthEvent] : [])),
  };
}
