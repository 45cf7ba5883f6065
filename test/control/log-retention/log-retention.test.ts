import {
  CloudWatchLogsClient,
  CreateLogGroupCommand,
  DescribeLogGroupsCommand,
  PutRetentionPolicyCommand,
} from '@aws-sdk/client-cloudwatch-logs';
import { beforeEach, expect, test } from 'vitest';
import { onEvent } from '../../../lib/control/log-retention/index';
import { resourceEvents } from '../../support/custom-resource-events';
import { mockClient } from '../../support/mocked-clients';

const logs = mockClient(CloudWatchLogsClient);
const deps = { logs: new CloudWatchLogsClient({ region: 'us-west-2' }) };
const NAME = '/aws/sagemaker/TrainingJobs';
const events = resourceEvents('Custom::SlipwaySharedLogRetention', {
  logGroupNames: JSON.stringify([NAME]),
  retentionDays: '365',
});
const puts = () => logs.commandCalls(PutRetentionPolicyCommand).map((c) => c.args[0].input);

beforeEach(() => {
  logs.reset();
  logs.on(DescribeLogGroupsCommand).resolves({ logGroups: [] });
});

test('a group that nobody has given a retention gets one', async () => {
  logs.on(DescribeLogGroupsCommand).resolves({ logGroups: [{ logGroupName: NAME }] });
  expect(await onEvent(deps, events.create())).toEqual({ PhysicalResourceId: 'shared-log-retention' });
  expect(puts()).toEqual([{ logGroupName: NAME, retentionInDays: 365 }]);
  const [asked] = logs.commandCalls(DescribeLogGroupsCommand);
  expect(asked?.args[0].input).toEqual({ logGroupNamePrefix: NAME });
  expect(logs.commandCalls(CreateLogGroupCommand)).toHaveLength(0);
});

test("somebody's retention stays", async () => {
  logs.on(DescribeLogGroupsCommand).resolves({ logGroups: [{ logGroupName: NAME, retentionInDays: 30 }] });
  await onEvent(deps, events.update());
  expect(puts()).toEqual([]);
});

test('a group that is not there yet is made; one with a longer name is another one', async () => {
  logs.on(DescribeLogGroupsCommand).resolves({ logGroups: [{ logGroupName: `${NAME}-old`, retentionInDays: 1 }] });
  await onEvent(deps, events.create());
  expect(logs.commandCalls(CreateLogGroupCommand)[0]?.args[0].input).toEqual({ logGroupName: NAME });
  expect(puts()).toHaveLength(1);
});

test('a group that somebody else made in the meantime is used', async () => {
  const exists = Object.assign(new Error('exists'), { name: 'ResourceAlreadyExistsException' });
  logs.on(CreateLogGroupCommand).rejects(exists);
  await onEvent(deps, events.create());
  expect(puts()).toHaveLength(1);
});

test('an answer without a list names no group', async () => {
  logs.on(DescribeLogGroupsCommand).resolves({});
  await onEvent(deps, events.create());
  expect(logs.commandCalls(CreateLogGroupCommand)).toHaveLength(1);
});

test('delete leaves groups and logs alone', async () => {
  expect(await onEvent(deps, events.delete())).toEqual({ PhysicalResourceId: 'physical-1' });
  expect(logs.calls()).toHaveLength(0);
});

test('fails: malformed properties', async () => {
  await expect(onEvent(deps, events.create({ retentionDays: 'never' }))).rejects.toThrow(/retentionDays: /);
});

test('fails: a refused call fails the deploy', async () => {
  logs.on(CreateLogGroupCommand).rejects(new Error('denied'));
  await expect(onEvent(deps, events.create())).rejects.toThrow('denied');
});
