import { paginateQuery } from '@aws-sdk/client-dynamodb';
import { DescribeTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import { recordOf } from '../../../lib/control/shared/run-store';
import { ITEM } from '../../../lib/core/contracts/storage';
import type { TimelineEvent } from '../../../lib/core/lifecycle/action';
import type { Attempt } from '../../../lib/core/lifecycle/record';
import { EPOCH_MS } from '../../../tools/simulation/core/epoch';
import { runResult } from '../../../tools/simulation/result';
import type { Play } from '../../../tools/simulation/simulate';
import { timelineOf } from '../../../tools/simulation/timeline';
import type { SimRun } from '../../../tools/simulation/world/sim-run';
import type { Stage } from './stage';

/** What both worlds must say of one run. */
export interface RunOutcome {
  state: string;
  reason: string;
  /** Status and instances of each job, as SageMaker has them. */
  jobs: string[];
  /** Class and reason that the product gave the end of each attempt. */
  attempts: string[];
  /** What the product decided, with its reasons: among them where each attempt begins. */
  decisions: string[];
}

/**
 * What each world only sees, and says when it looks, is left out; so is how a doubtful create was settled, which depends on how far the call got.
 */
const DECISIONS = new Set([
  'run-intended',
  'run-admitted',
  'attempt-intended',
  'attempt-ended',
  'rung-changed',
  'hand-over-asked',
  'stop-asked',
  'stop-decided',
  'resume-asked',
  'quota-wait',
  'after-failed',
  'loss-rollback',
  'run-preempted',
  'run-stopped',
  'run-failed',
  'run-completed',
]);

/** Reasons name the bucket of an environment, and each world has its own. */
const withoutBuckets = (text: string): string => text.replace(/s3:\/\/[^/]+\//g, 's3://');

const minuteOf = ({ at }: TimelineEvent): number => Math.floor(at / 60_000);

/** Attempts may begin and end in one instant of the clock, which each function of the sandbox counts on from for itself. */
function placeOf({ what, text }: TimelineEvent): number {
  const attempt = Number(/^attempt (\d+) /.exec(text)?.[1]);
  if (Number.isNaN(attempt)) return /^run-(intended|admitted)$/.test(what) ? 0 : Number.MAX_SAFE_INTEGER;
  return 2 * attempt + (what === 'attempt-ended' ? 1 : 0);
}

/** @param documents of the run table, by item */
function outcomeOf(documents: ReadonlyMap<string, string>, jobs: string[]): RunOutcome {
  const { state, reason } = recordOf(documents.get(ITEM.run) ?? '');
  const below = <T>(prefix: string) =>
    [...documents].sort().flatMap(([item, text]) => (item.startsWith(prefix) ? [JSON.parse(text) as T] : []));
  const lines = below<TimelineEvent>(ITEM.events).sort(
    (a, b) => minuteOf(a) - minuteOf(b) || placeOf(a) - placeOf(b) || a.at - b.at,
  );
  return {
    state,
    reason: withoutBuckets(reason),
    jobs,
    attempts: below<Attempt>(ITEM.attempts).map((one) =>
      withoutBuckets(`${one.failureClass ?? 'live'}: ${one.reason ?? ''}`),
    ),
    decisions: lines
      .filter(({ what }) => DECISIONS.has(what))
      .map(({ what, text }) => withoutBuckets(`${what}: ${text}`)),
  };
}

const refused = (reason: string): RunOutcome => ({ state: 'refused', reason, jobs: [], attempts: [], decisions: [] });

/** When the simulation decided something, in milliseconds since the start. */
export function decisionTimes({ world }: Play): number[] {
  const lines = world.runs.flatMap((run) => timelineOf(world, run));
  return lines.filter(({ what }) => DECISIONS.has(what)).map(({ at }) => at - EPOCH_MS);
}

/** By the id that the scenario gives the run. */
export function simulatedOutcomes({ world }: Play): Record<string, RunOutcome> {
  const outcome = (run: SimRun) => {
    const { state, reason, attempts } = runResult(world, run);
    if (state === 'refused') return refused(reason);
    const items = world.table
      .itemsOf(run.runId ?? '')
      .map((item) => [item.item?.S ?? '', item.document?.S ?? '{}'] as const);
    const jobs = attempts.map((a) => `${a.status}/${a.secondaryStatus} ${a.instances} x ${a.instanceType}`);
    return outcomeOf(new Map(items), jobs);
  };
  return Object.fromEntries(world.runs.map((run) => [run.id, outcome(run)]));
}

/** The same of the embedded AWS: from the run table and SageMaker. */
export async function sandboxOutcome(stage: Stage, run: SimRun): Promise<RunOutcome> {
  if (run.runId === undefined) return refused(run.refusal ?? '');
  const documents = new Map<string, string>();
  const query = {
    TableName: `slipway-${stage.environment}-runs`,
    KeyConditionExpression: 'runId = :run',
    ExpressionAttributeValues: { ':run': { S: run.runId } },
    ConsistentRead: true,
  };
  for await (const { Items = [] } of paginateQuery({ client: stage.dynamo }, query))
    for (const { item, document } of Items) documents.set(item?.S ?? '', document?.S ?? '{}');
  const jobs: string[] = [];
  for (const { name } of run.jobs) jobs.push(await jobOutcome(stage, name));
  return outcomeOf(documents, jobs);
}

async function jobOutcome(stage: Stage, TrainingJobName: string): Promise<string> {
  const job = await stage.sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName }));
  const { InstanceCount, InstanceType, SelectedInstanceCount, SelectedInstanceType } = job.ResourceConfig ?? {};
  const count = SelectedInstanceCount ?? InstanceCount;
  return `${job.TrainingJobStatus}/${job.SecondaryStatus} ${count} x ${SelectedInstanceType ?? InstanceType}`;
}
