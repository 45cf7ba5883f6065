import { PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { StopProcessingJobCommand, StopTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import { PublishCommand } from '@aws-sdk/client-sns';
import { plainLine } from '../../../core/config/formats/plain-text';
import { bucketAndKey } from '../../../core/config/formats/s3-uri';
import { EVENT_DETAIL_TYPE, EVENT_SOURCE } from '../../../core/contracts/launcher';
import { runPrefixes } from '../../../core/job/plan';
import { teamKeyEncryption } from '../../../core/job/team-key';
import type { Effect } from '../../../core/lifecycle/action';
import type { CreateOutcome } from '../../../core/lifecycle/observed';
import type { Notice, RunRecord } from '../../../core/lifecycle/record';
import { isNamed } from '../../shared/custom-resource';
import { describeError } from '../../shared/errors';
import type { ReconcileDeps } from '../deps';
import type { EffectResults } from '../observe/observe';
import type { Subject } from '../observe/subject';
import { chatMessage } from './chat-message';
import { createJob } from './create-job';
import { MAX_TEXT, noticeMail } from './notice-message';

type CreateEffect = Extract<Effect, { do: 'create' }>;
type HandOverEffect = Extract<Effect, { do: 'hand-over' }>;

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
        await requestHandOver(deps, subject, effect);
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
async function create(deps: ReconcileDeps, subject: Subject, effect: CreateEffect): Promise<CreateOutcome | undefined> {
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
async function requestHandOver(deps: ReconcileDeps, subject: Subject, effect: HandOverEffect): Promise<void> {
  const { record } = subject;
  const { descriptor } = (await subject.whole()) ?? {};
  if (!descriptor) return;
  const { attempt, text } = effect;
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

async function publish(deps: ReconcileDeps, record: RunRecord, notice: Notice): Promise<boolean> {
  try {
    const { Subject, Message } = noticeMail(record, notice, deps);
    const MessageAttributes = attributesOf({ notice: plainLine(notice.id), run: record.runId, team: record.team });
    await deps.sns.send(new PublishCommand({ TopicArn: deps.topicArn, Subject, Message, MessageAttributes }));
    await tellChannels(deps, record, notice);
    return true;
  } catch (error) {
    // The notice stays in the outbox, and the run in the index of active runs, until it is published.
    deps.log('error', 'a notice was not published', {
      runId: record.runId,
      notice: notice.id,
      error: describeError(error),
    });
    return false;
  }
}

/**
 * Sends the notice to the chat topics of the environment and of the run's team, once. A failure is only logged: the notice was already sent
 * by e-mail, which must not be repeated because of a chat topic.
 */
async function tellChannels(deps: ReconcileDeps, record: RunRecord, notice: Notice): Promise<void> {
  const topics = ['', record.team].flatMap((name) => deps.chatTopics?.[name] ?? []);
  for (const TopicArn of topics) {
    try {
      await deps.sns.send(new PublishCommand({ TopicArn, Message: chatMessage(record, notice, deps) }));
    } catch (error) {
      deps.log('error', 'a chat channel was not told', {
        runId: record.runId,
        notice: notice.id,
        error: describeError(error),
      });
    }
  }
}

/** Attributes by which a subscription's filter policy can select notices, for example those of one team. */
const attributesOf = (values: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(values).map(([name, StringValue]) => [name, { DataType: 'String', StringValue }]));

/** Publishes the state change of a run on the event bus. The event is only a hint; if it is lost, status still shows the state. */
export async function announce(deps: ReconcileDeps, before: RunRecord, after: RunRecord): Promise<void> {
  if (before.state === after.state) return;
  const detail = {
    runId: after.runId,
    team: after.team,
    environment: after.environment,
    state: after.state,
    previousState: before.state,
    reason: plainLine(after.reason, MAX_TEXT),
    attempt: after.attempt?.number ?? null,
    jobName: after.attempt?.jobName ?? null,
    committedStep: after.committed?.step ?? null,
  };
  const entry = {
    Source: EVENT_SOURCE,
    DetailType: EVENT_DETAIL_TYPE,
    EventBusName: deps.eventBusName,
    Detail: JSON.stringify(detail),
  };
  try {
    const { FailedEntryCount } = await deps.events.send(new PutEventsCommand({ Entries: [entry] }));
    if (FailedEntryCount) deps.log('warn', 'the bus refused an event', detail);
  } catch (error) {
    deps.log('warn', 'an event was not sent', { ...detail, error: describeError(error) });
  }
}
