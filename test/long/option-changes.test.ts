// Every option of an environment file that the embedded AWS deploys, changed and changed back, with a live run and without.
import { DescribeTableCommand, DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OPTION_CHANGES } from '../../lib/environment/option-changes';
import { Cycle } from '../e2e/support/cycle';
import { type EnvironmentValues, merged, VARIATIONS } from '../laws/support/family';

const BASE: EnvironmentValues = { quotas: { enforce: 'off' }, protection: { terminationProtection: false } };
/** They need a second stack, a quota that is there, or an update that never ends well without the other option. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'storage.adopt': 'test/e2e/life-cycle.test.ts',
  'storage.retain': 'the deletion policy alone changes; test/long/failed-creations.test.ts deletes without retention',
  'quotas.require': 'test/e2e/quota-refusal.test.ts',
};
const TABLE = 'slipway-change-runs';

let cycle: Cycle;
beforeAll(async () => {
  cycle = await Cycle.start('change');
  await cycle.done('deploy', yaml(BASE));
});
afterAll(() => cycle?.end());

const yaml = (values: EnvironmentValues) =>
  Object.entries(values)
    .map(([name, section]) => `${name}: ${JSON.stringify(section)}\n`)
    .join('');
const dynamo = () => new DynamoDBClient(cycle.client());
const tableId = async () => (await dynamo().send(new DescribeTableCommand({ TableName: TABLE }))).Table?.TableArn;
const live = (isLive: boolean) =>
  dynamo().send(
    new PutItemCommand({
      TableName: TABLE,
      Item: {
        runId: { S: 'gpt-1' },
        item: { S: 'RUN' },
        team: { S: 'default' },
        ...(isLive && { active: { S: 'active' } }),
      },
    }),
  );

const cases = VARIATIONS.filter(({ option }) => !(option in ELSEWHERE));
const takesNothing = (option: string) => !OPTION_CHANGES.some((row) => row.option === option);

describe.each(cases.map(({ option, values }) => [option, values[0] ?? {}] as const))('%s', (option, change) => {
  test('is changed and changed back', async () => {
    const before = [await tableId(), await cycle.buckets()];
    await cycle.done('deploy', yaml(merged(BASE, change)));
    await cycle.done('deploy', yaml(BASE));
    expect([await tableId(), await cycle.buckets()]).toEqual(before);
    expect(await cycle.status()).toMatch(/^(CREATE|UPDATE)_COMPLETE$/);
  });

  test('under a live run either takes nothing from it or is refused, and the stack can be updated', async () => {
    await live(true);
    try {
      const { code, said } = await cycle.cdk('deploy', yaml(merged(BASE, change)));
      if (takesNothing(option)) expect([code, code === 0 ? '' : said]).toEqual([0, '']);
      else if (code !== 0) expect(said).toContain('must not hit live runs, got gpt-1');
    } finally {
      await live(false);
    }
    await cycle.done('deploy', yaml(BASE));
  });
});
