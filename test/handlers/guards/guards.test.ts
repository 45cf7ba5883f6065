import { DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb';
import { ListTrainingJobsCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import { beforeEach, describe, expect, test } from 'vitest';
import { guardDeps } from '../../../lib/handlers/guards';
import { onEvent } from '../../../lib/handlers/guards/guards';
import { resourceEvents } from '../../support/custom-resource-events';
import { mockClient } from '../../support/mocked-clients';

const dynamo = mockClient(DynamoDBClient);
const sagemaker = mockClient(SageMakerClient);
const deps = {
  dynamo: new DynamoDBClient({ region: 'us-west-2' }),
  sagemaker: new SageMakerClient({ region: 'us-west-2' }),
  tableName: 'slipway-research-runs',
};
const deletion = resourceEvents('Custom::SlipwayGuard', { guards: 'delete', environment: 'research' });
const replacement = resourceEvents('Custom::SlipwayGuard', {
  guards: 'replace',
  environment: 'research',
  fingerprint: 'new',
});

beforeEach(() => {
  dynamo.reset();
  sagemaker.reset();
  dynamo.on(QueryCommand).resolves({ Items: [] });
  sagemaker.on(ListTrainingJobsCommand).resolves({ TrainingJobSummaries: [] });
});

const active = (...ids: string[]) =>
  dynamo.on(QueryCommand).resolves({ Items: ids.map((id) => ({ runId: { S: id }, item: { S: 'RUN' } })) });

describe('the guard of the deletion', () => {
  test('lets the stack go when no run is live, having asked the index of active runs', async () => {
    expect(await onEvent(deps, deletion.delete())).toEqual({ PhysicalResourceId: 'delete-guard-research' });
    expect(dynamo.commandCalls(QueryCommand)[0]?.args[0].input).toMatchObject({
      TableName: 'slipway-research-runs',
      IndexName: 'active-runs',
      ExpressionAttributeNames: { '#k': 'active' },
    });
  });

  test('refuses and names the runs', async () => {
    active('gpt-1', 'gpt-2');
    await expect(onEvent(deps, deletion.delete())).rejects.toThrow(
      'this deletion must not hit live runs, got gpt-1, gpt-2; stop them (slipway stop RUN) or wait, then try again',
    );
  });

  test('names five and counts the rest', async () => {
    active('a', 'b', 'c', 'd', 'e', 'f', 'g');
    await expect(onEvent(deps, deletion.delete())).rejects.toThrow('got a, b, c, d, e and 2 more;');
  });

  test('a live job counts although its table is gone; jobs of others do not', async () => {
    const gone = Object.assign(new Error('no table'), { name: 'ResourceNotFoundException' });
    dynamo.on(QueryCommand).rejects(gone);
    sagemaker.on(ListTrainingJobsCommand).resolves({
      TrainingJobSummaries: [
        {
          TrainingJobName: 'research-gpt-a001',
          TrainingJobArn: undefined,
          CreationTime: undefined,
          TrainingJobStatus: 'InProgress',
        },
        {
          TrainingJobName: 'my-research-job',
          TrainingJobArn: undefined,
          CreationTime: undefined,
          TrainingJobStatus: 'InProgress',
        },
      ],
    });
    await expect(onEvent(deps, deletion.delete())).rejects.toThrow('got research-gpt-a001;');
  });

  test('create and update ask nothing', async () => {
    await onEvent(deps, deletion.create());
    await onEvent(deps, deletion.update());
    expect(dynamo.calls()).toHaveLength(0);
  });

  test('fails: an answer that does not come is no permission to delete', async () => {
    dynamo.on(QueryCommand).rejects(new Error('throttled'));
    await expect(onEvent(deps, deletion.delete())).rejects.toThrow('throttled');
  });
});

describe('the guard of replacements', () => {
  test('refuses an update with another fingerprint while a run is live', async () => {
    active('gpt-1');
    await expect(onEvent(deps, replacement.update({}, { fingerprint: 'old' }))).rejects.toThrow(
      'this update, which replaces role, network or key, must not hit live runs, got gpt-1;',
    );
  });

  test('lets it through when no run is live', async () => {
    expect(await onEvent(deps, replacement.update({}, { fingerprint: 'old' }))).toEqual({
      PhysicalResourceId: 'replace-guard-research-new',
    });
  });

  test('never refuses the way back after it refused an update: the id says what is deployed', async () => {
    active('gpt-1');
    const back = replacement.update({ fingerprint: 'old' }, { fingerprint: 'new' });
    const answer = await onEvent(deps, Object.assign(back, { PhysicalResourceId: 'replace-guard-research-old' }));
    expect(answer).toEqual({ PhysicalResourceId: 'replace-guard-research-old' });
  });

  test('asks nothing when the fingerprint is the same, nor on create and delete', async () => {
    active('gpt-1');
    await onEvent(deps, replacement.update());
    await onEvent(deps, replacement.create());
    await onEvent(deps, replacement.delete());
    expect(dynamo.calls()).toHaveLength(0);
  });
});

test('fails: malformed properties', async () => {
  await expect(onEvent(deps, deletion.delete({ guards: 'all' }))).rejects.toThrow(
    /Custom::SlipwayGuard Resource: guards: /,
  );
});

test('fails: without the name of the table the function says which variable is missing', () => {
  expect(() => guardDeps({})).toThrow('environment variable SLIPWAY_RUN_TABLE is not set');
});
