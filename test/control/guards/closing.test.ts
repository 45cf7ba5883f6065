import { DynamoDBClient, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { ListProcessingJobsCommand, ListTrainingJobsCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import { beforeEach, describe, expect, test } from 'vitest';
import { onEvent } from '../../../lib/control/guards/index';
import { resourceEvents } from '../../support/custom-resource-events';
import { mockClient } from '../../support/mocked-clients';

const dynamo = mockClient(DynamoDBClient);
const sagemaker = mockClient(SageMakerClient);
const named = (name: string) => Object.assign(new Error(`got ${name}`), { name });
const deletion = resourceEvents('Custom::SlipwayGuard', { guards: 'delete', environment: 'research' });
const replacement = resourceEvents('Custom::SlipwayGuard', {
  guards: 'replace',
  environment: 'research',
  fingerprint: 'new',
});
let slept: number[];
const deps = {
  dynamo: new DynamoDBClient({ region: 'us-west-2' }),
  sagemaker: new SageMakerClient({ region: 'us-west-2' }),
  tableName: 'slipway-research-runs',
  now: () => new Date('2026-11-22T12:00:00Z'),
  sleep: async (milliseconds: number) => {
    slept.push(milliseconds);
  },
  isRollback: async () => false,
};
const runs = (...ids: string[]) => ids.map((id) => ({ runId: { S: id }, item: { S: 'RUN' } }));

beforeEach(() => {
  slept = [];
  dynamo.reset();
  sagemaker.reset();
  dynamo.on(QueryCommand).resolves({ Items: [] });
  sagemaker.on(ListTrainingJobsCommand).resolves({ TrainingJobSummaries: [] });
  sagemaker.on(ListProcessingJobsCommand).resolves({ ProcessingJobSummaries: [] });
});

describe('the deletion of a stack', () => {
  test('closes the environment by one item of the run table, waits ten seconds, then looks', async () => {
    await onEvent(deps, deletion.delete());
    expect(dynamo.commandCalls(PutItemCommand).map(({ args }) => args[0].input)).toEqual([
      {
        TableName: 'slipway-research-runs',
        Item: { runId: { S: 'CLOSED' }, item: { S: 'CLOSED' }, isClosed: { BOOL: true } },
      },
    ]);
    expect(slept).toEqual([10_000]);
    expect(dynamo.calls().map(({ args }) => args[0].constructor.name)).toEqual(['PutItemCommand', 'QueryCommand']);
    expect(dynamo.commandCalls(QueryCommand)[0]?.args[0].input).toMatchObject({
      ExpressionAttributeValues: { ':v': { S: 'active' } },
    });
  });

  test('goes on without a run table, in which nothing can start', async () => {
    dynamo.on(PutItemCommand).rejects(named('ResourceNotFoundException'));
    dynamo.on(QueryCommand).rejects(named('ResourceNotFoundException'));
    expect(await onEvent(deps, deletion.delete())).toEqual({ PhysicalResourceId: 'delete-guard-research' });
  });

  test('fails: an environment that cannot be closed is not deleted', async () => {
    dynamo.on(PutItemCommand).rejects(named('AccessDeniedException'));
    await expect(onEvent(deps, deletion.delete())).rejects.toThrow('got AccessDeniedException');
    expect(dynamo.commandCalls(QueryCommand)).toHaveLength(0);
  });

  test('asks for jobs of the environment of the last 60 days: none is older that has not ended', async () => {
    await onEvent(deps, deletion.delete());
    const common = { NameContains: 'research-', CreationTimeAfter: new Date('2026-09-23T12:00:00Z'), MaxResults: 100 };
    const asked = [
      ...sagemaker.commandCalls(ListTrainingJobsCommand),
      ...sagemaker.commandCalls(ListProcessingJobsCommand),
    ];
    expect(asked.map(({ args }) => args[0].input)).toEqual([
      expect.objectContaining({ ...common, StatusEquals: 'InProgress' }),
      expect.objectContaining({ ...common, StatusEquals: 'Stopping' }),
      expect.objectContaining({ ...common, StatusEquals: 'InProgress' }),
      expect.objectContaining({ ...common, StatusEquals: 'Stopping' }),
    ]);
  });

  test('takes answers without a list, and entries without a name, for nothing', async () => {
    dynamo.on(QueryCommand).resolves({});
    sagemaker.on(ListTrainingJobsCommand).resolves({});
    sagemaker.on(ListProcessingJobsCommand).resolves({});
    await expect(onEvent(deps, deletion.delete())).resolves.toBeDefined();
    dynamo.on(QueryCommand).resolves({ Items: [{ item: { S: 'RUN' } }] });
    sagemaker.on(ListTrainingJobsCommand).resolves({ TrainingJobSummaries: [{} as never] });
    sagemaker.on(ListProcessingJobsCommand).resolves({ ProcessingJobSummaries: [{} as never] });
    await expect(onEvent(deps, deletion.delete())).resolves.toBeDefined();
  });

  test.each([
    [5, 'got a, b, c, d, e;'],
    [6, 'got a, b, c, d, e and 1 more;'],
  ])('refused by %i runs names five of them at most', async (count, message) => {
    dynamo.on(QueryCommand).resolves({ Items: runs(...'abcdef'.slice(0, count)) });
    await expect(onEvent(deps, deletion.delete())).rejects.toThrow(message);
  });
});

describe('an update that replaces something', () => {
  const closed = () => dynamo.commandCalls(PutItemCommand).map(({ args }) => args[0].input.Item?.isClosed?.BOOL);
  const update = () => replacement.update({}, { fingerprint: 'old' });

  test('closes the environment and waits before it reads the runs', async () => {
    await onEvent(deps, update());
    expect(closed()).toEqual([true]);
    expect(slept).toEqual([10_000]);
    expect(dynamo.calls().map(({ args }) => args[0].constructor.name)).toEqual(['PutItemCommand', 'QueryCommand']);
  });

  test('opens the environment when it is refused, and when it is rolled back after it was accepted', async () => {
    dynamo.on(QueryCommand).resolves({ Items: runs('a') });
    await expect(onEvent(deps, update())).rejects.toThrow('got a;');
    expect(closed()).toEqual([true, false]);
    const isRollback = async () => true;
    const { PhysicalResourceId } = await onEvent({ ...deps, isRollback }, update());
    expect(PhysicalResourceId).toBe((await onEvent(deps, replacement.create())).PhysicalResourceId);
    expect(closed()).toEqual([true, false, false]);
  });

  test('leaves the environment as it is when its resource is created or deleted, also after a replacement', async () => {
    await onEvent(deps, replacement.create());
    await onEvent(deps, replacement.delete());
    expect(dynamo.commandCalls(PutItemCommand)).toHaveLength(0);
  });

  test('ends with the delete guard, which opens the environment', async () => {
    await onEvent(deps, deletion.update({ fingerprint: 'new' }, { fingerprint: 'old' }));
    expect(closed()).toEqual([false]);
    expect(slept).toEqual([]);
  });
});

describe('what an update takes', () => {
  const given = {
    guards: 'replace',
    environment: 'research',
    fingerprint: 'f',
    storage: 'retained',
  };
  const guard = resourceEvents('Custom::SlipwayGuard', { ...given, teams: '["nlp","speech"]', zones: '["a","b","c"]' });
  const live = (team: string) =>
    dynamo.on(QueryCommand).resolves({ Items: [{ ...runs('gpt-1')[0], team: { S: team } }] });
  const keys = (value: Record<string, string>) => ({ teamKeys: JSON.stringify(value) });
  const refused = (now: Record<string, unknown>, old: Record<string, unknown> = {}) =>
    onEvent(deps, guard.update(now, old)).then(
      () => 'let through',
      (error: Error) => error.message,
    );

  test('is named in the plural where it is more than one', async () => {
    live('nlp');
    expect(await refused({ zones: '["c"]' })).toContain('removes zones a, b,');
    expect(await refused({ teams: '[]' })).toContain('removes teams nlp, speech,');
  });

  test('is what has another fingerprint, also where versions say what they store', async () => {
    live('nlp');
    expect(await refused({}, { fingerprint: 'other' })).toContain('which replaces role, network or key,');
    expect(await refused({}, { fingerprint: 'other' })).toContain('replaces role');
  });

  test('is nothing of a team that comes with a key of its own, nor of one that had it', async () => {
    live('vision');
    const three = '["nlp","speech","vision"]';
    expect(await refused({ teams: three, ...keys({ vision: 'own' }) })).toBe('let through');
    live('nlp');
    expect(await refused({ ...keys({ nlp: 'own' }) }, keys({ nlp: 'own' }))).toBe('let through');
    expect(await refused(keys({ nlp: 'own' }), { teams: undefined })).toBe('let through');
  });

  test.each([
    ['adopted', 'adopted'],
    ['deleted', 'deleted'],
    ['deleted', 'retained'],
    ['retained', 'deleted'],
    ['retained', 'adopted'],
  ])('is nothing where storage was %s and is %s', async (old, storage) => {
    expect(await refused({ storage }, { storage: old })).toBe('let through');
  });

  const KEY = 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
  test.each([
    ['own', KEY, 'retained', `must stay own, with which what the team has stored is encrypted, got ${KEY};`],
    ['own', 'other', 'adopted', 'got other;'],
    [KEY, `${KEY}0`, 'adopted', `must stay ${KEY},`],
    ['own', KEY, 'adopted', 'let through'],
  ])('is refused for a key %s that becomes %s under storage %s', async (had, key, storage, answer) => {
    expect(await refused({ ...keys({ nlp: key }), storage }, keys({ nlp: had }))).toContain(answer);
  });

  test('leaves out the key of a team that no list names any more', async () => {
    expect(await refused({ teams: undefined, ...keys({}) }, { teams: undefined, ...keys({ nlp: 'own' }) })).toBe(
      'let through',
    );
  });

  test('says that no key is left where one was named', async () => {
    expect(await refused({}, { keyArn: KEY })).toContain(
      `must stay ${KEY}, with which what is stored is encrypted, got none;`,
    );
    expect(await refused({ keyArn: KEY })).toContain(
      `(leave the option out), with which what is stored is encrypted, got ${KEY};`,
    );
  });
});
