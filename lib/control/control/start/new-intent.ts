import { createHash } from 'node:crypto';
import { isArchiveInS3 } from '../../../core/config/code-source';
import type { Descriptor } from '../../../core/config/descriptor';
import { fillPlaceholders } from '../../../core/config/formats/places';
import type { RunSpec } from '../../../core/config/run-spec';
import type { StartRequest } from '../../../core/contracts/control';
import { codeUri, configText } from '../../../core/job/plan';
import { policyOf } from '../../../core/lifecycle/capacity-options';
import { newRun } from '../../../core/lifecycle/intent';
import type { RunPolicy, RunRecord } from '../../../core/lifecycle/record';
import { elasticSizes } from '../../../core/rules/compute/elastic';
import type { RunIntent } from '../../shared/items';
import type { ControlDeps } from '../deps';
import { REGISTERED } from './live-twin';

/** Data of a new run besides its file. */
interface NewRun
  extends Pick<StartRequest, 'clientRequestId' | 'startAt' | 'note'>,
    Pick<Descriptor, 'prices' | 'guardrails'> {
  runId: string;
  team: string;
}

/** Creates the record, with everything that `decide` needs from the run file. */
export function recordOf(
  deps: Pick<ControlDeps, 'environment' | 'region'>,
  run: RunSpec,
  { runId, team, prices, guardrails, clientRequestId, startAt, note }: NewRun,
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
      policy: cappedPolicy(policyOf(run, deps.region, prices, elasticSizes(run)), guardrails),
      ...(Object.keys(run.tags).length > 0 && { tags: run.tags }),
      ...(note !== undefined && { note }),
      ...(!REGISTERED.test(clientRequestId) && { requestId: clientRequestId }),
      ...(startAt !== undefined && { notBefore: Date.parse(startAt) }),
    },
    now,
  );
}

/** The guardrail bounds every run, whether or not its file names a cap. */
function cappedPolicy(policy: RunPolicy, guardrails: Descriptor['guardrails']): RunPolicy {
  const most = guardrails?.maxCostPerRunUsd;
  if (most === undefined || (policy.maxCostUsd ?? Number.POSITIVE_INFINITY) <= most) return policy;
  return { ...policy, maxCostUsd: most, costCapFrom: 'guardrails.maxCostPerRunUsd' };
}

/** sha256 of the resolved spec: two files with the same meaning have the same hash. */
const configHash = (run: RunSpec): string => createHash('sha256').update(configText(run)).digest('hex');

/** Location of the code and the results of a run. */
type Place = Parameters<typeof codeUri>[0];

/** The inputs from which every attempt of the run is created. */
export function intentOf(
  deps: Pick<ControlDeps, 'randomSecret'>,
  run: RunSpec,
  request: StartRequest,
  place: Place,
): RunIntent {
  const { descriptor } = place;
  if (!descriptor.driver)
    throw new Error(`the descriptor of environment ${descriptor.name} names no driver; deploy it again`);
  return {
    spec: run,
    code: codeOf(run, request, place),
    driver: { uri: descriptor.driver.uri, hash: descriptor.driver.hash },
    secret: deps.randomSecret(),
    trainingImageUri: descriptor.trainingImageUri ?? null,
  };
}

/** Location of the code. An archive that was already in S3 stays there, and must keep the digest that it had at the start. */
function codeOf(run: RunSpec, { code }: StartRequest, place: Place): RunIntent['code'] {
  const { source } = run.code;
  if (isArchiveInS3(source))
    return {
      uri: fillPlaceholders(source, place),
      sha256: run.code.sha256 ?? code?.sha256 ?? null,
      bytes: null,
    };
  return code ? { ...code, uri: codeUri(place, run, code.sha256) } : null;
}
