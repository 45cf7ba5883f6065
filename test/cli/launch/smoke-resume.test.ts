// Which attempt a smoke run compares with the checkpoint before its resume.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { beforeEach, expect, test, vi } from 'vitest';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';
import { DESCRIPTOR } from '../../support/runs';

const lambda = mockClient(LambdaClient);
const s3 = mockClient(S3Client);
mockClient(SageMakerClient);
mockClient(ServiceQuotasClient);
const FILE = path.join(mkdtempSync(path.join(tmpdir(), 'slipway-smoke-')), 'environment.json');
const controlAliasArn = 'arn:aws:lambda:us-west-2:111122223333:function:f:team-nlp';
writeFileSync(FILE, JSON.stringify({ ...DESCRIPTOR, controlAliasArn }));

/** First steps of the attempts before the stop, and of those that follow the resume. */
let before: number[];
let after: number[];
let isResumed: boolean;
/** Requests for the status since the last stop or resume. */
let asked: number;

function statusOf(): object {
  const firsts = isResumed ? [...before, ...after] : before;
  const attempts = firsts.map((firstStep, i) => ({ number: i + 1, trainingJobName: 'j', status: 'x', firstStep }));
  return { runId: 'r', state: 'stopped', reason: 'x', attempt: attempts.length, attempts };
}

beforeEach(() => {
  vi.stubEnv('SLIPWAY_POLL_SECONDS', '0');
  [isResumed, asked] = [false, 0];
  lambda.on(InvokeCommand).callsFake(({ Payload }) => {
    const { action } = JSON.parse(Buffer.from(Payload).toString());
    if (action === 'resume') [isResumed, asked] = [true, 0];
    const live = action === 'status' && asked++ === 0 ? { state: 'running' } : {};
    const answer = action === 'status' ? { ...statusOf(), ...live } : { runId: 'r', uploads: [], attempts: [] };
    return { Payload: Buffer.from(JSON.stringify({ ok: true, ...answer })) };
  });
  const committed = () => (isResumed ? [20, 40] : [20]).map((step) => `runs/nlp/r/step-${step}/COMMITTED.json`);
  s3.on(ListObjectsV2Command).callsFake(() => ({
    KeyCount: 1,
    Contents: committed().map((Key) => ({ Key, Size: 1 })),
  }));
  s3.on(GetObjectCommand).callsFake(({ Key }) => {
    const step = Number(/step-(\d+)/.exec(Key)?.[1]);
    return { Body: { transformToString: async () => JSON.stringify({ schema: 1, step, attempt: 1, objects: [] }) } };
  });
});

test.each([
  ['the second attempt', [1], [21], true],
  ['the third attempt when the first one was tried again', [1, 11], [21], true],
  ['the first attempt after the resume, whatever follows it', [1], [21, 31], true],
  ['the third attempt, which starts at another step', [1, 21], [11], false],
])('compares %s with the checkpoint', async (_, first, later, ok) => {
  [before, after] = [first, later];
  const words = ['--smoke', 'account', '--yes', '--json', '--environment', FILE];
  const { stdout, stderr } = await runCli('launch', 'runs/builtin/demo.yaml', ...words);
  expect(stdout, stderr).not.toBe('');
  const { checks } = JSON.parse(stdout) as { checks: { name: string; ok: boolean; detail: string }[] };
  expect(checks.find(({ name }) => name === 'resume')).toEqual({
    name: 'resume',
    ok,
    detail: `attempt ${first.length + 1} from step ${later[0]} after committed step 20`,
  });
});
