import { createHash } from 'node:crypto';
import { DynamoDBClient, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { ListProcessingJobsCommand, ListTrainingJobsCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import { beforeEach, describe, expect, test } from 'vitest';
import { guardDeps } from '../../../lib/control/guards';
import { onEvent } from '../../../lib/control/guards/index';
import { resourceEvents } from '../../support/custom-resource-events';
import { mockClient } from '../../support/mocked-clients';

const dynamo = mockClient(DynamoDBClient);
const sagemaker = mockClient(SageMakerClient);
const deps = {
  dynamo: new DynamoDBClient({ region: 'us-west-2' }),
  sagemaker: new SageMakerClient({ region: 'us-west-2' }),
  tableName: 'slipway-research-runs',
  now: () => new Date('2026-11-22T12:00:00Z'),
  sleep: async () => {},
  isRollback: async () => false,
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
  sagemaker.on(ListProcessingJobsCommand).resolves({ ProcessingJobSummaries: [] });
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

  test('is not stopped by a run that only waits for the cost of its warm pool', async () => {
    dynamo.on(QueryCommand).resolves({ Items: [{ runId: { S: 'gpt-1' }, poolOnly: { BOOL: true } }] });
    expect(await onEvent(deps, deletion.delete())).toEqual({ PhysicalResourceId: 'delete-guard-research' });
  });

  test('closes the environment before it looks, and opens it again when it refuses or a stack is made', async () => {
    const closed = () => dynamo.commandCalls(PutItemCommand).map(({ args }) => args[0].input.Item?.isClosed?.BOOL);
    await onEvent(deps, deletion.delete());
    expect(closed()).toEqual([true]);
    active('gpt-1');
    await expect(onEvent(deps, deletion.delete())).rejects.toThrow('gpt-1');
    expect(closed()).toEqual([true, true, false]);
    await onEvent(deps, deletion.create());
    expect(closed().at(-1)).toBe(false);
  });

  test('reads every page of the active runs and of the jobs, of which the first may be empty', async () => {
    const runItem = (id: string, team: string) => ({ runId: { S: id }, item: { S: 'RUN' }, team: { S: team } });
    dynamo
      .on(QueryCommand)
      .resolvesOnce({ Items: [runItem('a', 'nlp')], LastEvaluatedKey: { runId: { S: 'a' } } })
      .resolves({ Items: [runItem('b', 'speech')] });
    await expect(onEvent(deps, deletion.delete())).rejects.toThrow('got a, b;');
    dynamo.on(QueryCommand).resolves({ Items: [] });
    sagemaker
      .on(ListTrainingJobsCommand, { StatusEquals: 'InProgress' })
      .resolvesOnce({ TrainingJobSummaries: [], NextToken: 'more' })
      .resolves({
        TrainingJobSummaries: [
          {
            TrainingJobName: 'research-old-a001',
            TrainingJobArn: undefined,
            CreationTime: undefined,
            TrainingJobStatus: 'InProgress',
          },
        ],
      });
    await expect(onEvent(deps, deletion.delete())).rejects.toThrow('got research-old-a001;');
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

  test('a job that is being stopped counts, and so does a processing job', async () => {
    sagemaker.on(ListTrainingJobsCommand, { StatusEquals: 'Stopping' }).resolves({
      TrainingJobSummaries: [{ TrainingJobName: 'research-gpt-a002' } as never],
    });
    sagemaker.on(ListProcessingJobsCommand, { StatusEquals: 'InProgress' }).resolves({
      ProcessingJobSummaries: [{ ProcessingJobName: 'research-tokens-a001' } as never],
    });
    await expect(onEvent(deps, deletion.delete())).rejects.toThrow('got research-tokens-a001, research-gpt-a002;');
  });

  test('create and update ask nothing', async () => {
    await onEvent(deps, deletion.create());
    await onEvent(deps, deletion.update());
    expect(dynamo.commandCalls(QueryCommand)).toHaveLength(0);
    expect(sagemaker.calls()).toHaveLength(0);
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
    expect((await onEvent(deps, replacement.update({}, { fingerprint: 'old' }))).PhysicalResourceId).toMatch(
      /^replace-guard-research-[0-9a-f]{16}$/,
    );
  });

  test('never refuses the way back after it refused an update: the id says what is deployed', async () => {
    active('gpt-1');
    const back = replacement.update({ fingerprint: 'old' }, { fingerprint: 'new' });
    const { PhysicalResourceId } = await onEvent(deps, replacement.create({ fingerprint: 'old' }));
    expect(await onEvent(deps, Object.assign(back, { PhysicalResourceId }))).toEqual({ PhysicalResourceId });
  });

  test('has its fingerprint in the id of the resource, which that of the deletion never has', async () => {
    const id = async (event: Parameters<typeof onEvent>[1]) => (await onEvent(deps, event)).PhysicalResourceId;
    expect(await id(replacement.create())).toMatch(/^replace-guard-research-/);
    expect(await id(replacement.create())).not.toBe(await id(replacement.create({ fingerprint: 'old' })));
    expect(await id(replacement.create({ fingerprint: '' }))).toBe('replace-guard-research');
    expect(await id(deletion.create({ fingerprint: 'new' }))).toBe('delete-guard-research');
  });

  test('asks nothing when the fingerprint is the same, nor on create and delete', async () => {
    active('gpt-1');
    const { PhysicalResourceId } = await onEvent(deps, replacement.create());
    await onEvent(deps, Object.assign(replacement.update(), { PhysicalResourceId }));
    await onEvent(deps, replacement.delete());
    expect(dynamo.commandCalls(QueryCommand)).toHaveLength(0);
  });
});

describe('the guard of updates', () => {
  const deployed = { teams: '["nlp","speech"]', zones: '["usw2-az1","usw2-az2"]' };
  const guarded = resourceEvents('Custom::SlipwayGuard', {
    guards: 'replace',
    environment: 'research',
    fingerprint: 'f',
    storage: 'retained',
    ...deployed,
  });
  const live = (runId: string, team: string) =>
    dynamo.on(QueryCommand).resolves({ Items: [{ runId: { S: runId }, item: { S: 'RUN' }, team: { S: team } }] });

  test('a team or a zone more is no matter to live runs', async () => {
    live('gpt-1', 'nlp');
    const more = { teams: '["nlp","speech","vision"]', zones: '["usw2-az1","usw2-az2","usw2-az3"]' };
    expect((await onEvent(deps, guarded.update(more))).PhysicalResourceId).toMatch(/^replace-guard-research-/);
  });

  test('a team cannot be removed while one of its runs is live', async () => {
    live('gpt-1', 'speech');
    await expect(onEvent(deps, guarded.update({ teams: '["nlp"]' }))).rejects.toThrow(
      'this update, which removes team speech, must not hit live runs, got gpt-1;',
    );
  });

  test('a team without live runs can be removed under those of another', async () => {
    live('gpt-1', 'nlp');
    await expect(onEvent(deps, guarded.update({ teams: '["nlp"]' }))).resolves.toBeDefined();
  });

  test('a zone cannot be removed while any run is live', async () => {
    live('gpt-1', 'nlp');
    await expect(onEvent(deps, guarded.update({ zones: '["usw2-az2"]' }))).rejects.toThrow('removes zone usw2-az1,');
  });

  test('the security groups of teams cannot be removed while any run is live, and may be added', async () => {
    live('gpt-1', 'nlp');
    const own = { teamGroups: 'own' };
    await expect(onEvent(deps, guarded.update({}, own))).rejects.toThrow(
      'this update, which removes the security groups of teams, must not hit live runs, got gpt-1;',
    );
    await expect(onEvent(deps, guarded.update(own))).resolves.toBeDefined();
  });

  test('the way back to version 0.2.0 from a refused change is never refused, whichever zones it named', async () => {
    live('gpt-1', 'speech');
    const zones = ['usw2-az1', 'usw2-az2'];
    const all = JSON.stringify(['f', ['nlp', 'speech'], zones, 'retained', zones, 'kms']);
    const hash = createHash('sha256').update(all).digest('hex').slice(0, 16);
    const old = { movedSubnets: JSON.stringify(zones), repository: 'kms', previousFingerprint: 'p' };
    const back = guarded.update(old, { fingerprint: 'g', repository: 'kms' });
    const deployed = { PhysicalResourceId: `replace-guard-research-${hash}` };
    expect(await onEvent(deps, Object.assign(back, deployed))).toEqual(deployed);
  });

  test('the way back from a refused change is never refused', async () => {
    live('gpt-1', 'speech');
    const { PhysicalResourceId } = await onEvent(deps, guarded.create());
    const back = Object.assign(guarded.update({}, { teams: '["nlp"]' }), { PhysicalResourceId });
    expect(await onEvent(deps, back)).toEqual({ PhysicalResourceId });
    const and = Object.assign(guarded.update({ teams: '["nlp"]' }), { PhysicalResourceId });
    await expect(onEvent(deps, and)).rejects.toThrow('removes team speech');
  });

  test.each([
    ['deleted', 'adopted', 'storage.adopt: must not be set while retain is false'],
    ['adopted', 'retained', 'storage.adopt: must stay true'],
  ])('fails: storage that is %s cannot become %s', async (old, storage, message) => {
    await expect(onEvent(deps, guarded.update({ storage }, { storage: old }))).rejects.toThrow(message);
  });

  test.each([
    ['aes256', 'kms', 'aes256'],
    ['kms', 'aes256', 'kms'],
  ])('fails: a repository made with %s cannot get %s, live runs or not', async (old, repository, stays) => {
    await expect(onEvent(deps, guarded.update({ repository }, { repository: old }))).rejects.toThrow(
      `image.encryption: must stay ${stays}, with which the repository of the environment was made, got ${repository}; write image: { encryption: ${stays} }`,
    );
  });

  test.each([
    ['aes256', 'aes256'],
    [undefined, 'aes256'],
    ['aes256', 'none'],
    ['none', 'kms'],
    [undefined, undefined],
  ])('an update from a repository with %s to %s goes on', async (old, repository) => {
    await expect(onEvent(deps, guarded.update({ repository }, { repository: old }))).resolves.toBeDefined();
  });

  const KEY = 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';

  test.each([
    [undefined, KEY, 'must stay the key that the stack made'],
    [KEY, undefined, `must stay ${KEY}`],
    [KEY, `${KEY.slice(0, -1)}c`, `must stay ${KEY}`],
  ])('fails: what is encrypted with key %s cannot get key %s, live runs or not', async (old, keyArn, message) => {
    await expect(onEvent(deps, guarded.update({ keyArn }, { keyArn: old }))).rejects.toThrow(
      `storage.kmsKeyArn: ${message}`,
    );
  });

  test('an existing key that stays lets an update through', async () => {
    await expect(onEvent(deps, guarded.update({ keyArn: KEY }, { keyArn: KEY }))).resolves.toBeDefined();
  });

  const teamKeys = (keys: Record<string, string>) => ({ teams: '["nlp","speech"]', teamKeys: JSON.stringify(keys) });

  test.each([
    [{ nlp: 'own' }, { nlp: 'shared' }, 'must stay own'],
    [{ nlp: 'own' }, {}, 'got shared'],
    [{ nlp: KEY }, { nlp: 'own' }, `must stay ${KEY}`],
    [{ nlp: 'own' }, { nlp: KEY }, `got ${KEY}`],
  ])('fails: a team with keys %j gets %j', async (old, now, message) => {
    await expect(onEvent(deps, guarded.update(teamKeys(now as Record<string, string>), teamKeys(old)))).rejects.toThrow(
      new RegExp(`^teams\\.nlp\\.kmsKey: .*${message}`),
    );
  });

  test.each([
    [{}, { nlp: 'own' }],
    [{ nlp: 'own' }, { nlp: 'own', speech: 'own' }],
  ])('teams with keys %j may get %j under live runs of others', async (old, now) => {
    live('gpt-1', 'vision');
    const [before, after] = [old, now].map((keys) => teamKeys(keys as Record<string, string>));
    await expect(onEvent(deps, guarded.update(after ?? {}, before ?? {}))).resolves.toBeDefined();
  });

  test('a key that the stack made may be named by a stack that adopts what it left', async () => {
    const adopting = { ...teamKeys({ nlp: KEY }), storage: 'adopted' };
    await expect(onEvent(deps, guarded.update(adopting, teamKeys({ nlp: 'own' })))).resolves.toBeDefined();
  });

  test('fails: a team does not get its first key while one of its runs is live, which could not save any more', async () => {
    live('gpt-1', 'nlp');
    await expect(onEvent(deps, guarded.update(teamKeys({ nlp: 'own' })))).rejects.toThrow(
      'this update, which gives team nlp another key (teams.<team>.kmsKey), must not hit live runs, got gpt-1;',
    );
    const both = { teams: '["nlp"]', teamKeys: '{"nlp":"own"}' };
    await expect(onEvent(deps, guarded.update(both))).rejects.toThrow(
      'removes team speech and gives team nlp another key',
    );
  });

  test('a change of keys alone is looked at: the id says which keys are deployed', async () => {
    const { PhysicalResourceId } = await onEvent(deps, guarded.create(teamKeys({ nlp: 'own' })));
    const away = guarded.update(teamKeys({}), teamKeys({ nlp: 'own' }));
    await expect(onEvent(deps, Object.assign(away, { PhysicalResourceId }))).rejects.toThrow('teams.nlp.kmsKey');
    const plain = await onEvent(deps, guarded.create());
    expect(plain.PhysicalResourceId).toBe('replace-guard-research-1b1ab846dd94ba74');
  });

  test('a team that goes takes its key with it', async () => {
    const now = { teams: '["speech"]', teamKeys: undefined };
    await expect(onEvent(deps, guarded.update(now, teamKeys({ nlp: 'own' })))).resolves.toBeDefined();
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
