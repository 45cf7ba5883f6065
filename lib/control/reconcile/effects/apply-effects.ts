import { PutObjectCommand } from '@aws-sdk/client-s3';
import { StopProcessingJobCommand, StopTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import { bucketAndKey } from '../../../core/config/formats/places';
import { runPrefixes } from '../../../core/job/plan';
import { teamKeyEncryption } from '../../../core/job/team-key';
import type { Effect } from '../../../core/lifecycle/action';
import type { CreateOutcome } from '../../../core/lifecycle/observed';
import type { Notice, RunRecord } from '../../../core/lifecycle/record';
import { isNamed } from '../../shared/custom-resource';
import { describeError } from '../../shared/errors';
import type { ReconcileDeps } from '../deps';
import { sendChat, sendMail } from '../notify/email';
import type { EffectResults } from '../observe/observe';
import type { Subject } from '../observe/subject';
import { createJob } from './create-job';

/** Carries out the effects that were decided and saved. Returns their results. */
export async function applyEffects(
  deps: ReconcileDeps,
  subject: Subject,
  effects: readonly Effect[],
): Promise<EffectResults> {
  const carried: EffectResults = { published: [] };
  for (const effect of effects) {
    switch (effect.do) {
      case 'create':
        carried.create = await create(deps, subject, effect);
        break;
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

/** Without the intent no create is ever decided, so this creates nothing. */
async function create(
  deps: ReconcileDeps,
  subject: Subject,
  effect: Extract<Effect, { do: 'create' }>,
): Promise<CreateOutcome | undefined> {
  const whole = await subject.whole();
  return whole && createJob(deps, { ...whole, record: subject.record }, effect);
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
    deps.log('error', 'a notice was not published', {
      runId: record.runId,
      notice: notice.id,
      error: describeError(error),
    });
    return false;
  }
  await sendChat(deps, record, notice);
  return true;
}
