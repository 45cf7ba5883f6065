import { S3Client } from '@aws-sdk/client-s3';
import { DescribeTrainingJobCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { Descriptor } from '../../../core/config/descriptor';
import { loadRun } from '../../../core/config/load';
import type { RunSpec } from '../../../core/config/run-spec';
import type { RunConfiguration, StatusAnswer } from '../../../core/contracts/control';
import { stateGiB } from '../../../core/planner/plan';
import { planRun } from '../../../core/planner/run/plan-run';
import type { JobFacts, Read, RunSources } from '../../../report/read/assemble';
import { trainingInstances } from '../../../shared/aws/live-usage';
import { awsClient } from '../../aws-client';
import { calling } from '../../aws-errors';
import { ServiceError } from '../../exit';
import { attempt, readStatus } from '../control-client';
import { progressLines } from '../logs/job-logs';
import { committedCheckpoints, textIn } from './committed-checkpoints';

/** What to read in addition to the parts of the report. */
export interface SourceOptions {
  /** `--set` options of the launch, for the planner. */
  overrides?: readonly string[];
  /** Whether the status includes the run's configuration. @default false */
  configuration?: boolean;
  /** Whether to read the planner's predictions, which only reports show. @default true */
  isPlanned?: boolean;
}

/** The sources of a report, with the complete answer of the control function. */
export type ReadSources = Omit<RunSources, 'status'> & { status: StatusAnswer; configuration?: RunConfiguration };

/**
 * Reads everything that a report contains. The control function must answer; if another source fails, the report says why that part is not
 * known.
 */
export async function readSources(
  descriptor: Descriptor,
  runId: string,
  { overrides = [], configuration = false, isPlanned = true }: SourceOptions = {},
): Promise<ReadSources> {
  const status = await readStatus(descriptor, runId, { timeline: true, ...(configuration && { configuration }) });
  const facts = await attempt(() => jobFacts(descriptor, status));
  const stored: Read<RunSpec> = isPlanned
    ? await attempt(() => storedRun(descriptor, runId, [...overrides, ...instanceOverrides(facts.value ?? [])]))
    : {};
  const [lines, checkpoints] = await Promise.all([
    attempt(() => progressLines(descriptor, status)),
    attempt(() => committedCheckpoints(descriptor, runId)),
  ]);
  const plan = stored.value ? planOf(stored.value, descriptor) : {};
  const { name: environment, region } = descriptor;
  const read = { lines, checkpoints, jobs: facts, plan };
  return {
    status,
    environment,
    region,
    readAt: new Date().toISOString(),
    ...read,
    configuration: status.configuration,
  };
}

/** Attempts whose job was never created are skipped. */
async function jobFacts({ region }: Descriptor, { attempts }: StatusAnswer): Promise<JobFacts[]> {
  const client = awsClient(SageMakerClient, { region });
  const created = attempts.filter((a) => a.status !== '');
  return Promise.all(
    created.map(async ({ trainingJobName }) => {
      const job = await calling(`describing ${trainingJobName}`, () =>
        client.send(new DescribeTrainingJobCommand({ TrainingJobName: trainingJobName })),
      );
      return {
        trainingJobName,
        // A job that never got instances has none selected among its alternatives.
        instances: trainingInstances(job).instances.filter(({ count }) => count > 0),
        isSpot: job.EnableManagedSpotTraining ?? false,
        billableSeconds: job.BillableTimeInSeconds ?? null,
      };
    }),
  );
}

/** The instances of the last job take precedence over the run file: `--set` at launch is not in the file. */
function instanceOverrides(jobs: readonly JobFacts[]): string[] {
  const [only, ...others] = jobs[jobs.length - 1]?.instances ?? [];
  if (!only || others.length > 0) return [];
  // The job's instance count includes its spare hosts.
  return [
    `compute.instanceType=${only.instanceType}`,
    `compute.instanceCount=${only.count}`,
    'compute.spareInstances=',
  ];
}

/** The planner's prediction for the run. Empty for a run that the planner does not support, such as one on CPUs. */
function planOf(run: RunSpec, descriptor: Descriptor): RunSources['plan'] {
  const plan = planRun(run, descriptor);
  if (Array.isArray(plan)) return {};
  const { tokensPerSecondPerGpu: planned, interval80 } = plan;
  const state = stateGiB(plan.memoryGiB);
  // When memory is short the allocator releases unused memory, so plan and run would only agree on the limit.
  const memory = plan.fits === 'fits' ? { memory: { state, rest: plan.memoryGiB.total - state } } : {};
  return { value: { planned, interval80: interval80.tokensPerSecondPerGpu, ...memory } };
}

/** The run file as it was launched. */
async function storedRun(descriptor: Descriptor, runId: string, overrides: readonly string[]): Promise<RunSpec> {
  const { artifactBucket: Bucket, team, region } = descriptor;
  const Key = `runs/${team}/${runId}/run.yaml`;
  const text = (await textIn(awsClient(S3Client, { region }), Bucket, Key)) ?? '';
  const { value, issues } = loadRun(text, overrides);
  if (!value)
    throw new ServiceError(`reading s3://${Bucket}/${Key}: must be a run file, got ${issues[0]?.message ?? ''}`);
  return value;
}
