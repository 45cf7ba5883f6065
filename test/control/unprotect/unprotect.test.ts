import {
  CloudFormationClient,
  DescribeStacksCommand,
  UpdateTerminationProtectionCommand,
} from '@aws-sdk/client-cloudformation';
import { beforeEach, expect, test } from 'vitest';
import { onEvent } from '../../../lib/control/unprotect/index';
import { resourceEvents } from '../../support/custom-resource-events';
import { mockClient } from '../../support/mocked-clients';

const cloudFormation = mockClient(CloudFormationClient);
const deps = { cloudFormation: new CloudFormationClient({ region: 'us-west-2' }) };
const events = resourceEvents('Custom::SlipwayUnprotect', {});
const stackIs = (StackStatus: string) =>
  cloudFormation.on(DescribeStacksCommand).resolves({ Stacks: [{ StackStatus } as never] });
const changed = () => cloudFormation.commandCalls(UpdateTerminationProtectionCommand).map((c) => c.args[0].input);

beforeEach(() => cloudFormation.reset());

test('the protection goes while a creation is rolled back', async () => {
  stackIs('ROLLBACK_IN_PROGRESS');
  expect(await onEvent(deps, events.delete())).toEqual({ PhysicalResourceId: 'physical-1' });
  expect(changed()).toEqual([{ StackName: events.delete().StackId, EnableTerminationProtection: false }]);
});

test.each(['DELETE_IN_PROGRESS', 'UPDATE_ROLLBACK_IN_PROGRESS', 'UPDATE_COMPLETE_CLEANUP_IN_PROGRESS'])(
  'it stays in %s',
  async (status) => {
    stackIs(status);
    await onEvent(deps, events.delete());
    expect(changed()).toEqual([]);
  },
);

test.each([[{}], [{ Stacks: [] }]])('it stays when CloudFormation answers %j', async (answer) => {
  cloudFormation.on(DescribeStacksCommand).resolves(answer);
  await onEvent(deps, events.delete());
  expect(cloudFormation.commandCalls(DescribeStacksCommand)[0]?.args[0].input).toEqual({
    StackName: events.delete().StackId,
  });
  expect(changed()).toEqual([]);
});

test('create and update ask nothing', async () => {
  expect(await onEvent(deps, events.create())).toEqual({ PhysicalResourceId: 'unprotect' });
  await onEvent(deps, events.update());
  expect(cloudFormation.calls()).toHaveLength(0);
});

test('fails: a service that refuses fails the deletion, with its reason', async () => {
  cloudFormation.on(DescribeStacksCommand).rejects(new Error('denied'));
  await expect(onEvent(deps, events.delete())).rejects.toThrow('denied');
});
