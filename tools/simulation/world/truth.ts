import type { Descriptor } from '../../../lib/core/config/descriptor';
import { fillPlaceholders } from '../../../lib/core/config/formats/places';
import type { RunSpec } from '../../../lib/core/config/run-spec';
import { runPrefixes } from '../../../lib/core/job/plan';
import { type SimJob, shapeCount } from '../job/job';
import { RunTruth } from '../job/steps/run-truth';
import { DEFAULT_SECONDS_PER_STEP, type ScenarioRun, stepsOf } from '../scenario/load';

const DEFAULT_START_MINUTES = 10;
const DEFAULT_COMMIT_MINUTES = 30;
const DEFAULT_CHECKPOINT_OBJECTS = 2;

/** How the jobs of a run behave: as the scenario sets it, otherwise the defaults. */
export function truthOf(entry: ScenarioRun, spec: RunSpec, descriptor: Descriptor, runId: string): RunTruth {
  const { mode, s3 } = spec.checkpoints;
  const isOnS3 = mode === 'direct' || mode === 'managed';
  const filled = fillPlaceholders(s3, { descriptor, runId });
  const place = isOnS3 ? placeOf(filled.endsWith('/') ? filled : `${filled}/`) : undefined;
  const writesHeartbeats =
    !spec.network.isolation && spec.distribution.contract === 'entrypoint' && spec.kind === 'training';
  const heartbeatPlace = placeOf(runPrefixes({ descriptor, runId, attempt: 1 }).heartbeat);
  return new RunTruth(
    runId,
    spec,
    {
      totalSteps: stepsOf(entry, spec.training) ?? 0,
      secondsPerStep: entry.secondsPerStep ?? DEFAULT_SECONDS_PER_STEP,
      commitEveryMs: (entry.commitEveryMinutes ?? DEFAULT_COMMIT_MINUTES) * 60_000,
      startMs: (entry.startMinutes ?? DEFAULT_START_MINUTES) * 60_000,
      checkpointObjects: entry.checkpointObjects ?? DEFAULT_CHECKPOINT_OBJECTS,
    },
    { place, heartbeat: writesHeartbeats ? { bucket: heartbeatPlace.bucket, key: heartbeatPlace.prefix } : undefined },
  );
}

function placeOf(uri: string): { bucket: string; prefix: string } {
  const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/(.*)$/.exec(uri) ?? [];
  return { bucket, prefix };
}

/** For an elastic run on fewer instances, each step takes proportionally longer. */
export function secondsPerStep({ wanted }: SimJob, { spec, behaviour }: RunTruth): number {
  if (!spec.compute.elastic) return behaviour.secondsPerStep;
  const training = shapeCount(wanted[0] ?? []) - spec.compute.spareInstances;
  return (behaviour.secondsPerStep * spec.compute.instanceCount) / Math.max(1, training);
}
