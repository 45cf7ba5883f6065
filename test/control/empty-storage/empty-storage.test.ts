import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import {
  DeleteObjectsCommand,
  GetBucketPolicyCommand,
  ListObjectVersionsCommand,
  PutBucketPolicyCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { beforeEach, describe, expect, test } from 'vitest';
import { onEvent } from '../../../lib/control/empty-storage/index';
import { resourceEvents } from '../../support/custom-resource-events';
import { mockClient } from '../../support/mocked-clients';

const s3 = mockClient(S3Client);
const cloudFormation = mockClient(CloudFormationClient);
let remaining = 60_000;
const deps = {
  s3: new S3Client({ region: 'us-west-2' }),
  cloudFormation: new CloudFormationClient({ region: 'us-west-2' }),
  partition: 'aws',
  remainingMs: () => remaining,
};
const events = resourceEvents('Custom::SlipwayEmptyStorage', {
  bucketNames: '["data","logs"]',
  when: 'rollback',
});
const named = (name: string) => Object.assign(new Error(name), { name });
const stackIs = (StackStatus: string) =>
  cloudFormation.on(DescribeStacksCommand).resolves({ Stacks: [{ StackStatus } as never] });

/** Versions by bucket, a page of two at a time. */
let objects: Record<string, string[]>;
beforeEach(() => {
  s3.reset();
  cloudFormation.reset();
  remaining = 60_000;
  objects = { data: ['a', 'b', 'c'], logs: ['d'] };
  s3.on(GetBucketPolicyCommand).rejects(named('NoSuchBucketPolicy'));
  s3.on(ListObjectVersionsCommand).callsFake(({ Bucket }) => {
    const [first, ...more] = (objects[Bucket] ?? []).slice(0, 2).map((Key) => ({ Key, VersionId: `v-${Key}` }));
    return { Versions: first ? [first] : [], DeleteMarkers: more };
  });
  s3.on(DeleteObjectsCommand).callsFake(({ Bucket, Delete }) => {
    const gone = Delete.Objects.map(({ Key }: { Key: string }) => Key);
    objects[Bucket] = (objects[Bucket] ?? []).filter((key) => !gone.includes(key));
    return {};
  });
});

describe('buckets that are retained', () => {
  test('are emptied while their creation is rolled back, every version and marker', async () => {
    stackIs('ROLLBACK_IN_PROGRESS');
    expect(await onEvent(deps, events.delete())).toEqual({ PhysicalResourceId: 'physical-1' });
    expect(objects).toEqual({ data: [], logs: [] });
    const [asked] = cloudFormation.commandCalls(DescribeStacksCommand);
    expect(asked?.args[0].input).toEqual({ StackName: events.delete().StackId });
    expect(s3.commandCalls(DeleteObjectsCommand)[0]?.args[0].input.Delete?.Quiet).toBe(true);
  });

  test.each([[{}], [{ Stacks: [] }]])('keep everything when CloudFormation answers %j', async (answer) => {
    cloudFormation.on(DescribeStacksCommand).resolves(answer);
    await onEvent(deps, events.delete());
    expect(s3.calls()).toHaveLength(0);
  });

  test('are closed once, also when the deletion is repeated', async () => {
    stackIs('ROLLBACK_IN_PROGRESS');
    const closed = { Sid: 'SlipwayEmptying' };
    s3.on(GetBucketPolicyCommand).resolves({ Policy: JSON.stringify({ Version: '2012-10-17', Statement: [closed] }) });
    await onEvent(deps, events.delete());
    const put = s3.commandCalls(PutBucketPolicyCommand).map(({ args }) => JSON.parse(args[0].input.Policy ?? ''));
    expect(put.map(({ Statement }) => Statement.length)).toEqual([1, 1]);
  });

  test('get a policy of one statement where they had none, and hold nothing that was never written', async () => {
    stackIs('ROLLBACK_IN_PROGRESS');
    s3.on(ListObjectVersionsCommand).resolves({});
    await onEvent(deps, events.delete());
    const put = JSON.parse(s3.commandCalls(PutBucketPolicyCommand)[0]?.args[0].input.Policy ?? '');
    expect(put).toMatchObject({ Version: '2012-10-17', Statement: [{ Sid: 'SlipwayEmptying' }] });
    expect(put.Statement).toHaveLength(1);
    expect(s3.commandCalls(DeleteObjectsCommand)).toHaveLength(0);
  });

  test.each([
    [20_000, 'every object'],
    [19_999, 'nothing'],
  ])('with %i ms left lose %s: 20 s are kept for the answer', async (left, lost) => {
    stackIs('ROLLBACK_IN_PROGRESS');
    remaining = left;
    const failed = await onEvent(deps, events.delete()).then(
      () => '',
      (error: Error) => error.message,
    );
    expect(failed).toBe(
      lost === 'nothing'
        ? 'data: must be empty before it is deleted, and holds more than was deleted in time; delete the stack again'
        : '',
    );
  });

  test.each([
    'DELETE_IN_PROGRESS',
    'UPDATE_ROLLBACK_IN_PROGRESS',
    'UPDATE_COMPLETE_CLEANUP_IN_PROGRESS',
    'ROLLBACK_FAILED',
  ])('keep everything in %s', async (status) => {
    stackIs(status);
    await onEvent(deps, events.delete());
    expect(s3.calls()).toHaveLength(0);
  });
});

describe('buckets that go with the stack', () => {
  const always = { when: 'always' };

  test('are emptied when it is deleted', async () => {
    stackIs('DELETE_IN_PROGRESS');
    await onEvent(deps, events.delete(always));
    expect(objects).toEqual({ data: [], logs: [] });
  });

  test('keep everything when the resource only leaves the template', async () => {
    stackIs('UPDATE_COMPLETE_CLEANUP_IN_PROGRESS');
    await onEvent(deps, events.delete(always));
    expect(s3.calls()).toHaveLength(0);
  });

  test('take no write any more before the first deletion, beside what their policy says', async () => {
    stackIs('DELETE_IN_PROGRESS');
    const tls = { Sid: 'Tls', Effect: 'Deny' };
    s3.on(GetBucketPolicyCommand).resolves({ Policy: JSON.stringify({ Version: '2012-10-17', Statement: [tls] }) });
    await onEvent(deps, events.delete(always));
    const policy = JSON.parse(s3.commandCalls(PutBucketPolicyCommand)[0]?.args[0].input.Policy ?? '');
    expect(policy.Statement).toEqual([
      tls,
      {
        Sid: 'SlipwayEmptying',
        Effect: 'Deny',
        Principal: '*',
        Action: 's3:PutObject',
        Resource: 'arn:aws:s3:::data/*',
      },
    ]);
    const order = s3.calls().map((call) => call.args[0].constructor.name);
    expect(order.indexOf('PutBucketPolicyCommand')).toBeLessThan(order.indexOf('ListObjectVersionsCommand'));
  });

  test('a bucket that is gone already is no failure', async () => {
    stackIs('DELETE_IN_PROGRESS');
    s3.on(GetBucketPolicyCommand, { Bucket: 'data' }).rejects(named('NoSuchBucket'));
    await onEvent(deps, events.delete(always));
    expect(objects).toEqual({ data: ['a', 'b', 'c'], logs: [] });
  });

  test('fails: what cannot be deleted in time is left for the next deletion', async () => {
    stackIs('DELETE_IN_PROGRESS');
    remaining = 1000;
    await expect(onEvent(deps, events.delete(always))).rejects.toThrow('data: must be empty before it is deleted');
  });

  test('fails: a bucket whose policy may not be read or written is not emptied', async () => {
    stackIs('DELETE_IN_PROGRESS');
    s3.on(PutBucketPolicyCommand).rejects(named('AccessDenied'));
    await expect(onEvent(deps, events.delete(always))).rejects.toThrow('AccessDenied');
    s3.on(GetBucketPolicyCommand).rejects(named('Throttling'));
    await expect(onEvent(deps, events.delete(always))).rejects.toThrow('Throttling');
    expect(s3.commandCalls(DeleteObjectsCommand)).toHaveLength(0);
  });

  test('fails: an object that cannot be deleted is named', async () => {
    stackIs('DELETE_IN_PROGRESS');
    s3.on(DeleteObjectsCommand).resolves({ Errors: [{ Key: 'a', Message: 'locked' }] });
    await expect(onEvent(deps, events.delete(always))).rejects.toThrow('first a: locked');
  });
});

test('create and update touch nothing', async () => {
  expect(await onEvent(deps, events.create())).toEqual({ PhysicalResourceId: 'empty-storage-data' });
  await onEvent(deps, events.update());
  expect([...s3.calls(), ...cloudFormation.calls()]).toHaveLength(0);
});

test('fails: malformed properties, and a service that does not answer', async () => {
  await expect(onEvent(deps, events.delete({ when: 'never' }))).rejects.toThrow(/when: /);
  cloudFormation.on(DescribeStacksCommand).rejects(named('Throttling'));
  await expect(onEvent(deps, events.delete())).rejects.toThrow('Throttling');
});
