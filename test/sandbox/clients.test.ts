import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requestText } from '../../lib/sandbox/wire/http-request';
import { FOREIGN, OWN, own } from './browser-headers';
import { BUCKET, bashJob, type Lab, openLab, run } from './support';

const execute = promisify(execFile);
const ROOT = path.join(__dirname, '..', '..');

/** boto3 and the AWS CLI are there: made by scripts/python-env.mjs, which `npm run test:e2e` runs first. */
const CLIENTS = path.join(ROOT, '.slipway', 'python');
let lab: Lab;

beforeAll(async () => {
  lab = await openLab();
});

afterAll(() => lab.close());

async function inClients(program: string, args: string[]): Promise<unknown> {
  const env = { ...lab.sandbox.env, PATH: process.env.PATH, HOME: lab.sandbox.stateDir };
  return JSON.parse((await execute(path.join(CLIENTS, 'bin', program), args, { env })).stdout);
}

test('boto3 runs a job to its logs, lists it, reads its tags and the quotas', async () => {
  const seen = await inClients('python', [path.join(ROOT, 'scripts', 'sandbox-clients.py'), lab.roleArn, BUCKET]);

  expect(seen).toEqual({
    status: 'Completed',
    transitions: ['Starting', 'Downloading', 'Training', 'Uploading', 'Completed'],
    created: expect.stringMatching(/^\d{4}-/),
    logs: ['hello from from-boto3', 'hello from from-boto3'],
    listed: ['from-boto3'],
    tags: [{ Key: 'team', Value: 'a' }],
    refused: 'ResourceInUse',
    quota: 'ml.p5.48xlarge for training job usage',
    quotas: (await lab.admin.quotas('us-east-1')).length,
  });
});

test('the AWS CLI lists and describes a job and reads a quota', async () => {
  await run(lab, bashJob(lab, 'for-cli', 'true'));
  const aws = (...args: string[]) => inClients('aws', [...args, '--output', 'json']);

  expect(await aws('sagemaker', 'list-training-jobs', '--name-contains', 'for-cli')).toMatchObject({
    TrainingJobSummaries: [{ TrainingJobName: 'for-cli', TrainingJobStatus: 'Completed' }],
  });
  expect(await aws('sagemaker', 'describe-training-job', '--training-job-name', 'for-cli')).toMatchObject({
    SecondaryStatus: 'Completed',
    ResourceConfig: { InstanceType: 'ml.m5.large' },
  });
  expect(
    await aws('service-quotas', 'get-service-quota', '--service-code', 'sagemaker', '--quota-code', 'L-00C91CB5'),
  ).toMatchObject({ Quota: { QuotaName: 'Number of instances across all training jobs' } });
});

test.each(FOREIGN)('fails: a web page that a browser shows reaches no service with %o', async (headers) => {
  const { aws, sagemaker } = lab.sandbox.endpoints;
  const calls = ['/?Action=ListUsers', '/_ministack/health', '/2015-03-31/functions', '/_slipway/faults'];
  for (const url of [aws, sagemaker].flatMap((server) => calls.map((call) => new URL(call, server))))
    for (const method of ['OPTIONS', 'GET', 'POST']) {
      const answer = await requestText(url, { method, headers: own(headers, Number(url.port)) }, '');
      expect([url.pathname, method, answer.status]).toEqual([url.pathname, method, 403]);
    }
  const { hostname, port } = new URL(aws);
  const socket = own({ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }, 0);
  const handshake = { ...socket, 'sec-websocket-key': 'c2xpcHdheS1zbGlwd2F5IQ==', ...own(headers, Number(port)) };
  const url = new URL(`http://${hostname}:${port}/_aws/execute-api/x`);
  expect((await requestText(url, { headers: handshake, agent: false })).status).toBe(403);
});

test.each(OWN)('a program that sends %o is answered', async (headers) => {
  const url = new URL('/_ministack/health', lab.sandbox.endpoints.aws);
  expect((await requestText(url, { headers: own(headers, Number(url.port)) })).status).toBe(200);
});
