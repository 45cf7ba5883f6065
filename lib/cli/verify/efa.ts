import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Descriptor } from '../../spec/descriptor';
import { EFA_SECONDS, type EfaObservation, type EfaWorld, type HealthEvent } from '../../verify';
import { launch } from '../launch/launch';
import { packageRoot } from '../package-root';
import { readAttemptLog } from '../runs/job-logs';
import { readStatus } from '../runs/read-status';
import type { Terminal } from '../terminal';

/** The collective of level `efa`: two hosts of the type, the environment's own image, NCCL alone. */
const runFile = (instanceType: string) =>
  JSON.stringify({
    name: 'verify-efa',
    code: {
      source: path.join(packageRoot(), 'containers/examples/allgather'),
      entryPoint: 'allgather.py',
      arguments: { collective: 'all_reduce', backends: 'nccl', 'min-bytes': 1 << 20, 'max-bytes': 1 << 30, seconds: 2 },
    },
    compute: { instanceType, instanceCount: 2 },
    checkpoints: { mode: 'none' },
    limits: { maxRuntimeSeconds: EFA_SECONDS, maxAttempts: 1 },
  });

const EVENT = /^slipway (\{.*\})$/;

/** Launches the run through the team's control function, as a researcher would, and reads the driver's events. */
export function efaWorld(
  descriptor: Descriptor,
  instanceType: string,
  { id, report }: { id: string; report(text: string): void },
): EfaWorld {
  let running: Promise<EfaObservation> | undefined;
  const observe = async (): Promise<EfaObservation> => {
    const runId = `verify-efa-${id}`;
    const file = path.join(tmpdir(), `slipway-verify-${id}.yaml`);
    writeFileSync(file, runFile(instanceType));
    const silent: Terminal = { out: () => undefined, err: (text) => report(`efa: ${text}`) };
    const environment = `${descriptor.name}/${descriptor.team}`;
    await launch(file, { environment, region: descriptor.region, runId, yes: true, wait: true }, silent).catch(() => 4);
    const run = await readStatus(descriptor, runId);
    const attempt = run.attempts.length;
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
  };
  return {
    observation: () => {
      running ??= observe();
      return running;
    },
  };
}
