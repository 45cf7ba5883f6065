// What every custom resource of ours does with a refusal: it fits into CloudFormation's response, and it stops no rollback.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import { DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb';
import { ListProcessingJobsCommand, ListTrainingJobsCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { CdkCustomResourceEvent } from 'aws-lambda';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { accepted, guardDeps, onEvent } from '../../../lib/control/guards';
import { acceptingRollback, pointingToLog } from '../../../lib/control/shared/custom-resource';
import { GUARD_TYPE } from '../../../lib/core/contracts/custom-resources';
import { ENV } from '../../../lib/core/contracts/launcher';
import { resourceEvents } from '../../support/custom-resource-events';
import { draws } from '../../support/draws';
import { mockClient } from '../../support/mocked-clients';

const HANDLERS = path.join(__dirname, '../../../lib/control');
const RUNTIME = path.join(
  __dirname,
  '../../../node_modules/aws-cdk-lib/custom-resources/lib/provider-framework/runtime',
);

beforeEach(() => {
  vi.stubEnv('AWS_REGION', 'us-west-2');
  vi.stubEnv('AWS_LAMBDA_LOG_GROUP_NAME', '/slipway/Slipway-research-us-west-2/deploys');
  vi.stubEnv(ENV.runTable, 'slipway-research-runs');
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

describe('a refusal', () => {
  const require = createRequire(__filename);
  const outbound: Record<string, unknown> = {};
  const file = path.join(RUNTIME, 'outbound.js');
  // Its AWS clients are those of the Lambda runtime.
  require.cache[file] = { id: file, filename: file, loaded: true, exports: outbound } as unknown as NodeJS.Module;
  const util = require(path.join(RUNTIME, 'util.js')) as Record<string, unknown>;
  const framework = require(path.join(RUNTIME, 'framework.js')) as { onEvent(event: unknown): Promise<void> };
  // The longest names and ids of a stack.
  const event = {
    RequestType: 'Update',
    StackId: `arn:aws-us-gov:cloudformation:us-gov-west-1:111122223333:stack/${'S'.repeat(128)}/${'0'.repeat(36)}`,
    RequestId: '0'.repeat(36),
    LogicalResourceId: 'L'.repeat(255),
    PhysicalResourceId: 'P'.repeat(200),
    ResponseURL: 'https://cloudformation.example/answer',
  };

  /** The response that the CDK's framework sends when a handler throws. */
  async function responseTo(error: Error): Promise<{ body: string; reason: string }> {
    const thrown = (await pointingToLog(() => Promise.reject(error))().catch((caught) => caught)) as Error;
    const payload = { errorType: thrown.name, errorMessage: thrown.message, trace: (thrown.stack ?? '').split('\n') };
    let body = '';
    vi.stubEnv('USER_ON_EVENT_FUNCTION_ARN', `arn:aws:lambda:us-west-2:111122223333:function:${'f'.repeat(64)}`);
    util.log = () => undefined;
    outbound.invokeFunction = async () => ({ FunctionError: 'Unhandled', Payload: JSON.stringify(payload) });
    outbound.httpRequest = async (_options: unknown, text: string) => {
      body = text;
    };
    await framework.onEvent({ ...event });
    return { body, reason: (JSON.parse(body) as { Reason: string }).Reason };
  }

  test('begins and ends with the reason, and has no stack trace', async () => {
    const { reason } = await responseTo(
      new Error('quotas: must cover it, got 1 too small; request the increase\nsecond: line'),
    );
    expect(reason.split('\n')).toEqual([
      'quotas: must cover it, got 1 too small; request the increase',
      'second: line; its log is in log group /slipway/Slipway-research-us-west-2/deploys',
      '',
      `Logs: /aws/lambda/${'f'.repeat(64)}`,
      '',
      'quotas: must cover it, got 1 too small; request the increase',
    ]);
  });

  test('fits into the response that CloudFormation accepts, whatever its text', async () => {
    const line = fc.string({ maxLength: 900, unit: fc.constantFrom('a', '"', '\\', 'é', '😀', '\t', '\u0001', ' ') });
    await fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 80 }), async (lines) => {
        const { body } = await responseTo(new Error(lines.join('\n')));
        expect(Buffer.byteLength(body)).toBeLessThanOrEqual(4096);
      }),
      { numRuns: draws(50), verbose: 1 },
    );
  });

  test('keeps whole lines and says how many are in the log, where all of it is', async () => {
    const lines = Array.from(
      { length: 60 },
      (_, i) => `network.existing.subnetIds[${i}]: must have a route to S3, got none`,
    );
    const { reason } = await responseTo(new Error(lines.join('\n')));
    const kept = reason.split('\n').filter((line) => line.startsWith('network.existing')).length - 1;
    expect(reason).toContain(`and ${60 - kept} more in the log; its log is in log group`);
    expect(kept).toBeGreaterThan(20);
    expect(console.error).toHaveBeenCalledWith(expect.stringContaining(lines[59] ?? ''));
  });
});

describe('a rollback of an update', () => {
  const cloudFormation = mockClient(CloudFormationClient);
  const stackIs = (StackStatus: string) =>
    cloudFormation.on(DescribeStacksCommand).resolves({ Stacks: [{ StackStatus } as never] });
  beforeEach(() => cloudFormation.reset());

  type Entry = { handler(event: CdkCustomResourceEvent, context?: unknown): Promise<{ PhysicalResourceId?: string }> };
  const entry = (name: string) => import(`../../../lib/control/${name}/index.ts`) as Promise<Entry>;
  /** Handlers that refuse what they are given. The driver and the image have attributes that only their work yields. */
  const REFUSING = readdirSync(HANDLERS)
    .filter((name) => !name.includes('.') && name !== 'shared')
    .filter((name) => readFileSync(path.join(HANDLERS, name, 'index.ts'), 'utf8').includes('pointingToLog('))
    .filter((name) => !['driver-publish', 'image-build', 'empty-storage', 'unprotect', 'guards'].includes(name));

  test.each(REFUSING)('%s refuses an update that it cannot read, and accepts the same as a rollback', async (name) => {
    const { handler } = await entry(name);
    const event = resourceEvents('Custom::Slipway', { needs: 'none' }).update();
    stackIs('UPDATE_IN_PROGRESS');
    await expect(handler(event)).rejects.toThrow(/Custom::Slipway Resource/);
    stackIs('UPDATE_ROLLBACK_IN_PROGRESS');
    expect(await handler(event)).toMatchObject({ PhysicalResourceId: 'physical-1' });
    cloudFormation.on(DescribeStacksCommand).rejects(new Error('no permission'));
    await expect(handler(event)).rejects.toThrow(/Custom::Slipway Resource/);
  });

  test('that removes a zone again is not refused by the guard under a live run, and the next update is', async () => {
    const dynamo = mockClient(DynamoDBClient);
    const sagemaker = mockClient(SageMakerClient);
    sagemaker.on(ListTrainingJobsCommand).resolves({}).on(ListProcessingJobsCommand).resolves({});
    dynamo.on(QueryCommand).resolves({ Items: [{ runId: { S: 'base' } }] });
    const deps = { ...guardDeps(process.env), sleep: async () => undefined };
    const handler = acceptingRollback((event) => onEvent(deps, event), accepted);
    const given = { guards: 'replace', environment: 'research', fingerprint: 'f', storage: 'retained' };
    const guard = resourceEvents(GUARD_TYPE, { ...given, teams: '["nlp"]' });
    const [few, more] = [{ zones: '["a"]' }, { zones: '["a","b"]' }];

    stackIs('UPDATE_IN_PROGRESS');
    const added = await handler(guard.update(more, few));
    // Something else fails: CloudFormation sends the deployed properties, with the id that the guard has just given.
    const rollback = {
      ...guard.update(few, more),
      PhysicalResourceId: added.PhysicalResourceId,
    } as CdkCustomResourceEvent;
    await expect(handler(rollback)).rejects.toThrow(
      'this update, which removes zone b, must not hit live runs, got base',
    );
    stackIs('UPDATE_ROLLBACK_IN_PROGRESS');
    const back = await handler(rollback);
    expect(back.PhysicalResourceId).not.toBe(added.PhysicalResourceId);
    // The same change once more is a new update.
    stackIs('UPDATE_IN_PROGRESS');
    const removal = { ...guard.update({ zones: '[]' }, few), PhysicalResourceId: back.PhysicalResourceId };
    await expect(handler(removal as CdkCustomResourceEvent)).rejects.toThrow('removes zone a');
  });
});
