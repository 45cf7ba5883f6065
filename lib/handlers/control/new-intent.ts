import { createHash } from 'node:crypto';
import type { StartRequest } from '../../contracts/control';
import { codeUri, configText } from '../../job/plan';
import { newRun } from '../../lifecycle/intent';
import { policyOf } from '../../lifecycle/ladder';
import type { RunRecord } from '../../lifecycle/record';
import type { Descriptor } from '../../spec/descriptor';
import type { RunSpec } from '../../spec/run-spec';
import type { RunIntent } from '../shared/items';
import type { ControlDeps } from './deps';

/** A new record, with everything `decide` must know of the file. */
export function recordOf(
  deps: Pick<ControlDeps, 'environment' | 'region'>,
  team: string,
  run: RunSpec,
  runId: string,
  prices: Descriptor['prices'],
  now: number,
): RunRecord {
  return newRun(
    {
      runId,
      name: run.name,
      team,
      environment: deps.environment,
      kind: run.kind,
      configHash: configHash(run),
      priority: run.priority,
      after: run.after,
      policy: policyOf(run, deps.region, prices),
    },
    now,
  );
}

/** sha256 over the resolved spec: two files that mean the same have the same hash. */
const configHash = (run: RunSpec): string => createHash('sha256').update(configText(run)).digest('hex');

/** What every attempt of the run is made from. */
export function intentOf(
  deps: Pick<ControlDeps, 'randomSecret'>,
  run: RunSpec,
  request: StartRequest,
  descriptor: Descriptor,
  runId: string,
): RunIntent {
  if (!descriptor.driver)
    throw new Error(`the descriptor of environment ${descriptor.name} names no driver; deploy it again`);
  const code = request.code && {
    uri: codeUri({ descriptor, runId }, run, request.code.sha256),
    sha256: request.code.sha256,
    bytes: request.code.bytes,
  };
  const inS3 = run.code.source.startsWith('s3://') ? { uri: run.code.source, sha256: null, bytes: null } : null;
  return {
    spec: run,
    code: code ?? inS3,
    driver: { uri: descriptor.driver.uri, hash: descriptor.driver.hash },
    secret: deps.randomSecret(),
    trainingImageUri: descriptor.trainingImageUri ?? null,
  };
}
