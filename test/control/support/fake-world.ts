import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { PublishCommand, SNSClient } from '@aws-sdk/client-sns';
import { SendMessageBatchCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { onRequest } from '../../../lib/control/control/control';
import type { ControlDeps } from '../../../lib/control/control/deps';
import type { ReconcileDeps } from '../../../lib/control/reconcile/deps';
import { onEvent } from '../../../lib/control/reconcile/reconcile';
import { RunStore } from '../../../lib/control/shared/run-store';
import type { ControlPayload } from '../../../lib/core/contracts/control';
import type { JobFile } from '../../../lib/core/job/job-file';
import type { AppliedLimit } from '../../../lib/core/quota';
import { mockClient } from '../../support/mocked-clients';
import { fakeS3 } from './fake-s3';
import { fakeSageMaker } from './fake-sagemaker';
import { fakeTable } from './fake-table';

export const START = Date.UTC(2026, 10, 21, 12, 0, 0);
export const MINUTE = 60_000;
export const ALIAS = 'arn:aws:lambda:us-west-2:111122223333:function:slipway-research-control:team-nlp';

export const RUN_FILE = `name: pretrain
code: { source: builtin }
model: { architecture: { layers: 2, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 128, vocabularySize: 256 } }
training: { sequenceLength: 128, microBatchSize: 1, globalBatchSize: 4, steps: 100 }
compute: { instanceType: ml.m5.xlarge, instanceCount: 2 }
data: [{ channel: train, s3: 's3://{dataBucket}/tokens/' }]
`;

const descriptor = (team: string) => ({
  schemaVersion: 1,
  name: 'research',
  team,
  account: '111122223333',
  region: 'us-west-2',
  executionRoleArn: `arn:aws:iam::111122223333:role/slipway-research-${team}-execution`,
  dataBucket: 'data-bucket',
  checkpointBucket: 'checkpoint-bucket',
  artifactBucket: 'artifact-bucket',
  trainingImageUri:
    '111122223333.dkr.ecr.us-west-2.amazonaws.com/slipway-research@sha256:0000000000000000000000000000000000000000000000000000000000000000',
  driver: { uri: 's3://artifact-bucket/drivers/0f3a9c/', hash: '0f3a9c' },
});

/** Both functions over in-memory services and a clock that only moves when told to. */
export function fakeWorld() {
  let now = START;
  const clock = () => now;
  const table = fakeTable();
  const sagemaker = fakeSageMaker(clock);
  const s3 = fakeS3(clock);
  const ssm = mockClient(SSMClient);
  ssm.on(GetParameterCommand).callsFake(({ Name }) => ({
    Parameter: { Value: JSON.stringify({ ...descriptor(Name.split('/').at(-1)), ...extras }) },
  }));
  let extras: Record<string, unknown> = {};
  const messages: { body: string; id: string }[] = [];
  const sqs = mockClient(SQSClient);
  sqs.on(SendMessageCommand).callsFake((input) => {
    messages.push({ body: input.MessageBody, id: `m${messages.length}` });
    return {};
  });
  sqs.on(SendMessageBatchCommand).callsFake(({ Entries }) => {
    for (const { MessageBody } of Entries) messages.push({ body: MessageBody, id: `m${messages.length}` });
    return {};
  });
  const published: string[] = [];
  const sns = mockClient(SNSClient);
  sns.on(PublishCommand).callsFake((input) => {
    published.push(input.Message);
    return {};
  });
  const events = mockClient(EventBridgeClient);
  const announced: string[] = [];
  events.on(PutEventsCommand).callsFake((input) => {
    announced.push(JSON.parse(input.Entries[0].Detail).state);
    return {};
  });
  const limits = new Map<string, AppliedLimit>();
  const logged: string[] = [];
  const store = new RunStore(table.client, 'runs');
  const reader = {
    read: async (needs: readonly { name: string }[]) =>
      new Map(needs.map(({ name }) => [name, limits.get(name) ?? { unknown: 'not told in this test' }])),
  };
  const shared = {
    environment: 'research',
    region: 'us-west-2',
    queueUrl: 'https://queue',
    store,
    limits: reader,
    s3: s3.client,
    sqs: new SQSClient({ region: 'us-west-2' }),
    ssm: new SSMClient({ region: 'us-west-2' }),
    now: () => new Date(now),
  };
  const control: ControlDeps = {
    ...shared,
    sagemaker: sagemaker.client,
    presign: async ({ key }) => ({ url: `https://signed/${key}`, headers: {} }),
    readLog: async () => ({ events: [] }),
    randomSecret: () => 'a'.repeat(64),
  };
  const reconcile: ReconcileDeps = {
    ...shared,
    topicArn: 'arn:topic',
    eventBusName: 'default',
    shares: {},
    sagemaker: sagemaker.client,
    sagemakerOnce: sagemaker.client,
    sns: new SNSClient({ region: 'us-west-2' }),
    events: new EventBridgeClient({ region: 'us-west-2' }),
    sleep: async (milliseconds) => {
      now += milliseconds;
    },
    log: (level, message) => logged.push(`${level}: ${message}`),
  };
  /** Jobs whose change of state the bus tells with the next tick. */
  const ended: string[] = [];
  const ask = (payload: ControlPayload, alias = ALIAS) => onRequest(control, payload, alias);

  /** Delivers everything in the queue, also what the handling puts there. */
  async function settle(): Promise<void> {
    for (let turn = 0; messages.length > 0 && turn < 50; turn++) {
      const Records = messages.splice(0).map(({ body, id }) => ({ messageId: id, body, eventSource: 'aws:sqs' }));
      await onEvent(reconcile, { Records });
    }
  }

  return {
    control,
    reconcile,
    store,
    table,
    sagemaker,
    s3,
    ssm,
    sqs,
    sns,
    events,
    messages,
    published,
    announced,
    logged,
    limits,
    ask,
    settle,
    now: clock,
    describe: (more: Record<string, unknown>) => {
      extras = more;
    },
    pass: (milliseconds: number) => {
      now += milliseconds;
    },
    /** What DynamoDB does with items whose time is up. */
    expireItems: () => {
      for (const [id, item] of table.items)
        if (Number(item.expiresAt?.N ?? Infinity) * 1000 <= now) table.items.delete(id);
    },
    async tick(minutes = 5): Promise<void> {
      now += minutes * MINUTE;
      for (const TrainingJobName of ended.splice(0)) {
        const detail = { TrainingJobName, TrainingJobStatus: sagemaker.job(TrainingJobName).status };
        const type = 'SageMaker Training Job State Change';
        await onEvent(reconcile, { source: 'aws.sagemaker', 'detail-type': type, detail });
      }
      await onEvent(reconcile, { slipway: 'tick' });
      await settle();
    },
    /** A run whose job exists. */
    async launch(runFile = RUN_FILE): Promise<string> {
      const intent = await ask({ action: 'start', runFile, clientRequestId: `request-${now}` });
      if (!intent.ok || !('uploads' in intent)) throw new Error(JSON.stringify(intent));
      await ask({ action: 'start', runId: intent.runId, confirm: true });
      await settle();
      return intent.runId;
    },
    /** Moves the job to Training. */
    train(name: string): void {
      Object.assign(sagemaker.job(name), { secondaryStatus: 'Training', trainingStartedAt: now });
    },
    end(
      name: string,
      status: 'Completed' | 'Failed' | 'Stopped',
      failureReason?: string,
      secondaryStatus: string = status,
    ): void {
      Object.assign(sagemaker.job(name), { status, secondaryStatus, failureReason, endedAt: now });
      ended.push(name);
    },
    /** A checkpoint of the built-in trainer; `bytes` other than 4 tears it. */
    commit(runId: string, step: number, { bytes = 4, attempt = 1 } = {}): void {
      const prefix = `checkpoint-bucket/runs/nlp/${runId}/step-${step}/`;
      s3.put(`${prefix}shard-0`, 'data');
      s3.put(
        `${prefix}COMMITTED.json`,
        JSON.stringify({ schema: 1, step, attempt, objects: [{ key: 'shard-0', bytes }] }),
      );
    },
    /** Puts copies of a run into the table, each newer than the one before, as so many starts would. */
    copyRun(runId: string, count: number): void {
      const items = [...table.items.values()].filter((item) => item.runId?.S === runId);
      for (let i = 1; i <= count; i++) {
        const copies = JSON.parse(JSON.stringify(items).replaceAll(runId, `${runId}-copy-${i}`)) as typeof items;
        for (const copy of copies) {
          if (copy.createdAt) copy.createdAt = { S: new Date(now + i).toISOString() };
          table.items.set(`${copy.runId?.S}|${copy.item?.S}`, copy);
        }
      }
    },
    jobFile(runId: string, attempt: number): JobFile {
      return JSON.parse(s3.objects.get(`artifact-bucket/runs/nlp/${runId}/job/${attempt}/job.json`)?.body ?? 'null');
    },
  };
}

export type FakeWorld = ReturnType<typeof fakeWorld>;
