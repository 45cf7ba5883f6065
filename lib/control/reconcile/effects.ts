import { createHash } from 'node:crypto';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import {
  CreateProcessingJobCommand,
  CreateTrainingJobCommand,
  StopProcessingJobCommand,
  StopTrainingJobCommand,
} from '@aws-sdk/client-sagemaker';
import { isThrottlingError, isTransientError } from '@smithy/core/retry';
import { withFittingAlternatives } from '../../core/admission';
import { bucketAndKey } from '../../core/config/formats/places';
import { healthCheckOf, startsByDriver } from '../../core/config/resolve-run';
import { jobFile } from '../../core/job/job-file';
import { type JobPlan, runPrefixes } from '../../core/job/plan';
import { processingJobRequest } from '../../core/job/processing-request';
import { teamKeyEncryption } from '../../core/job/team-key';
import { trainingJobRequest } from '../../core/job/training-request';
import type { Effect } from '../../core/lifecycle/action';
import { runWithCapacityOption } from '../../core/lifecycle/capacity-options';
import { knownGpus } from '../../core/lifecycle/health/known-gpus';
import { failureHistory } from '../../core/lifecycle/ledger';
import type { CreateOutcome } from '../../core/lifecycle/observed';
import type { Checkpoint, Notice, RunRecord } from '../../core/lifecycle/record';
import { isNamed } from '../shared/custom-resource';
import { describeError } from '../shared/errors';
import type { ReconcileDeps } from './deps';
import { sendChat, sendMail } from './notify/email';
import type { EffectResults } from './observe/observe';
import { checkpointPrefix, type LocatedRun, type Subject, type WholeRun } from './observe/subject';

/** Carries out the effects that were decided and saved. Returns their results. */
export async function applyEffects(
  deps: ReconcileDeps,
  subject: Subject,
  effects: readonly Effect[],
): Promise<EffectResults> {
  const carried: EffectResults = { published: [] };
  for (const effect of effects) {
    switch (effect.do) {
      case 'create': {
        const whole = await subject.whole();
        // Without the intent no create is ever decided.
        if (whole) carried.create = await createJob(deps, { ...whole, record: subject.record }, effect);
        break;
      }
      case 'stop':
        carried.stopAnswer = await stopJob(deps, subject.record, effect.jobName);
        break;
      case 'hand-over':
        await requestHandOver(deps, subject, effect.attempt, effect.text);
        break;
      case 'notify':
        if (await publish(deps, subject.record, effect.notice)) carried.published.push(effect.notice.id);
        break;
      default:
        effect satisfies never;
    }
  }
  return carried;
}

/** Stopping a job that is over is not an error. After any other error the next round sends the call again. */
async function stopJob(
  deps: ReconcileDeps,
  record: RunRecord,
  jobName: string,
): Promise<EffectResults['stopAnswer'] | undefined> {
  try {
    if (record.kind === 'processing') {
      await deps.sagemaker.send(new StopProcessingJobCommand({ ProcessingJobName: jobName }));
    } else {
      await deps.sagemaker.send(new StopTrainingJobCommand({ TrainingJobName: jobName }));
    }
    return 'accepted';
  } catch (error) {
    const text = describeError(error);
    deps.log('warn', 'stop was not accepted', { runId: record.runId, jobName, error: text });
    // The service also refuses to stop a job that is being stopped.
    return isNamed(error, 'ValidationException') && !text.includes('in status Stopping') ? 'over' : undefined;
  }
}

/** Writes the request beside the job file of the attempt, where its driver polls for it. If it fails, a later round writes it again. */
async function requestHandOver(deps: ReconcileDeps, subject: Subject, attempt: number, text: string): Promise<void> {
  const { record } = subject;
  const { descriptor } = (await subject.whole()) ?? {};
  if (!descriptor) return;
  const place = bucketAndKey(runPrefixes({ descriptor, runId: record.runId, attempt }).handOver);
  const Body = `${JSON.stringify({ schema: 1, attempt, action: 'hand-over', reason: text })}\n`;
  try {
    await deps.s3.send(
      new PutObjectCommand({ ...place, Body, ContentType: 'application/json', ...teamKeyEncryption(descriptor) }),
    );
  } catch (error) {
    deps.log('warn', 'the request to hand over was not written', { runId: record.runId, error: describeError(error) });
  }
}

/** The e-mail comes first: one that was not accepted is sent again later, which does not repeat a chat message. */
async function publish(deps: ReconcileDeps, record: RunRecord, notice: Notice): Promise<boolean> {
  try {
    await sendMail(deps, record, notice);
  } catch (error) {
    // The notice stays in the outbox, and the run in the index of active runs, until it is published.
    const about = { runId: record.runId, notice: notice.id };
    deps.log('error', 'a notice was not published', { ...about, error: describeError(error) });
    return false;
  }
  await sendChat(deps, record, notice);
  return true;
}

type CreateEffect = Extract<Effect, { do: 'create' }>;

/** Writes job.json and makes the only create call of this round. Every outcome is returned as an observation, never as an exception. */
export async function createJob(deps: ReconcileDeps, subject: WholeRun, effect: CreateEffect): Promise<CreateOutcome> {
  const { descriptor, descriptorError } = subject;
  if (!descriptor) return { kind: 'not-attempted', error: `the descriptor: ${descriptorError}` };
  const [history, known] = await Promise.all([historyOf(deps, subject, effect), knownGpusOf(deps, subject)]);
  const plan = { ...planOf(deps, { ...subject, descriptor }, effect), ...history, ...known };
  const written = await writeJobFile(deps, plan);
  if (written) return written;
  try {
    if (plan.run.kind === 'processing') {
      const { ProcessingJobArn } = await deps.sagemakerOnce.send(
        new CreateProcessingJobCommand(processingJobRequest(plan)),
      );
      return { kind: 'accepted', arn: ProcessingJobArn ?? '' };
    }
    const { TrainingJobArn } = await deps.sagemakerOnce.send(new CreateTrainingJobCommand(trainingJobRequest(plan)));
    return { kind: 'accepted', arn: TrainingJobArn ?? '' };
  } catch (error) {
    return createOutcomeOf(error);
  }
}

/** Only the driver reads job.json. A denied write is a refusal before anything was created; after other errors a later round writes it. */
async function writeJobFile(deps: ReconcileDeps, plan: JobPlan): Promise<CreateOutcome | undefined> {
  if (!startsByDriver(plan.run)) return undefined;
  const place = bucketAndKey(`${runPrefixes(plan).job}job.json`);
  try {
    const Body = `${JSON.stringify(jobFile(plan), null, 2)}\n`;
    await deps.s3.send(
      new PutObjectCommand({ ...place, Body, ContentType: 'application/json', ...teamKeyEncryption(plan.descriptor) }),
    );
    return undefined;
  } catch (error) {
    const outcome = createOutcomeOf(error);
    const why = `job.json: ${describeError(error)}`;
    if (outcome.kind === 'refused') return { ...outcome, error: why };
    deps.log('warn', 'the job file was not written', { runId: plan.runId, error: why });
    return { kind: 'not-attempted', error: why };
  }
}

async function historyOf(
  deps: ReconcileDeps,
  { record }: WholeRun,
  effect: CreateEffect,
): Promise<Pick<JobPlan, 'history'>> {
  if (effect.attempt === 1) return {};
  return { history: failureHistory(await deps.store.attempts(record.runId), record) };
}

/** After so many attempts in a row that the platform has ended, GPUs of earlier jobs are checked and no longer refused. */
const FAILING = 2;

async function knownGpusOf(deps: ReconcileDeps, { record, intent }: WholeRun): Promise<Pick<JobPlan, 'knownGpus'>> {
  if (healthCheckOf(intent.spec) === 'off') return {};
  try {
    const isFailing = record.budgets.stalePlatform >= FAILING;
    const found = knownGpus(await deps.store.gpuEvidence(), record.team, deps.now().getTime(), isFailing);
    return found ? { knownGpus: found } : {};
  } catch (error) {
    deps.log('warn', 'known GPUs could not be read', { runId: record.runId, error: describeError(error) });
    return {};
  }
}

/** Code, driver, image and spec are those of the run; role, network and buckets come from the current descriptor. */
export function planOf(deps: Pick<ReconcileDeps, 'region'>, subject: LocatedRun, effect: CreateEffect): JobPlan {
  const { record, intent, descriptor } = subject;
  const run = withFittingAlternatives(runWithCapacityOption(intent.spec, effect.capacityOptionId), deps.region);
  return {
    run,
    descriptor: { ...descriptor, trainingImageUri: intent.trainingImageUri ?? descriptor.trainingImageUri },
    region: deps.region,
    runId: record.runId,
    attempt: effect.attempt,
    ...(intent.code && { code: { uri: intent.code.uri, sha256: intent.code.sha256 } }),
    driver: intent.driver,
    configHash: record.configHash,
    resumeFrom: resumeAddress(subject, effect.resumeFrom),
    ...(record.skips && { skips: record.skips }),
    ...(record.rollback && { rollback: record.rollback }),
    restartSecret: createHash('sha256').update(`${intent.secret}/${record.runId}/${effect.attempt}`).digest('hex'),
  };
}

/** Where the container finds the checkpoint: in S3, or below the local path to which the service restores the prefix. */
function resumeAddress(subject: LocatedRun, from: Checkpoint | null): string {
  if (!from) return '';
  const { mode, localPath } = subject.intent.spec.checkpoints;
  if (mode !== 'managed') return from.uri.replace(/\/+$/, '');
  const prefix = checkpointPrefix(subject);
  // A checkpoint of another run (`startFrom`) is not below the prefix.
  const path =
    prefix && from.uri.startsWith(prefix) ? from.uri.slice(prefix.length) : from.uri.split('/').findLast(Boolean);
  return `${localPath.replace(/\/$/, '')}/${path}`.replace(/\/+$/, '');
}

const ACCESS =
  /access ?denied|not authorized|UnrecognizedClient|InvalidClientToken|ExpiredToken|assume(d)? (the )?role|PassRole|\bKMS\b/i;

/**
 * What an error of a create call says about whether the job exists. Only a clear refusal (a 4xx that the service understood) shows that it
 * does not; after any other error its existence is unknown, and Describe decides. Some errors that pass have status 400, such as
 * RequestTimeout of S3 (https://github.com/aws/aws-sdk-js/issues/281, 2026-11-30).
 */
export function createOutcomeOf(error: unknown): CreateOutcome {
  const thrown = error as Parameters<typeof isThrottlingError>[0];
  const { name, message } = thrown;
  const text = `${name}: ${message}`;
  const status = thrown.$metadata?.httpStatusCode;
  if (name === 'ResourceInUse' || /names? must be unique|already exists/i.test(message))
    return { kind: 'exists', error: text };
  if (name === 'ResourceLimitExceeded') return { kind: 'limit', error: text };
  if (isThrottlingError(thrown)) return { kind: 'throttled', error: text };
  if (isTransientError(thrown) || status === undefined || status < 400 || status >= 500)
    return { kind: 'doubtful', error: text };
  return { kind: 'refused', failureClass: ACCESS.test(text) ? 'access' : 'config', error: text };
}
