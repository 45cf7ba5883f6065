// What stands below a region overrides the same options above, and nothing else.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EnvironmentFile, resolveEnvironments } from '../../../lib/core/config/environment-file';
import { loadEnvironment } from '../../../lib/core/config/load';
import { checkEnvironment } from '../../../lib/core/rules/environment';
import { draws } from '../../support/draws';

const KEY = 'arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const ROLE = 'arn:aws:iam::111122223333:role/nlp';

/** Options by path, with two values each. */
const OPTIONS: Record<string, [unknown, unknown]> = {
  'teams.nlp.principals': [[ROLE], [`${ROLE}-east`]],
  'teams.nlp.share': [2, 3],
  'teams.nlp.budgetUsdPerMonth': [50_000, 10_000],
  'teams.nlp.kmsKey': ['own', KEY],
  'teams.nlp.data': [['c4/', 'pile/'], []],
  'teams.nlp.notifications.emails': [['a@example.com'], ['b@example.com']],
  'teams.nlp.notifications.slackChannel.channelId': ['C1', 'C2'],
  'teams.vision.dashboards': [true, false],
  'queue.preemption.afterMinutes': [30, 0],
  'queue.preemption.leastTrainingMinutes': [120, 10],
  'queue.preemption.protectedMinutes': [480, 60],
  'storage.retain': [false, true],
  'storage.buckets.data': ['data-west', 'data-east'],
  'storage.buckets.checkpoints': ['checkpoints-west', 'checkpoints-east'],
  'storage.fsxLustre.sizeGiB': [1200, 2400],
  'storage.fsxLustre.throughputMBpsPerTiB': [500, 125],
  'network.existing.vpcId': ['vpc-01234567', 'vpc-12345678'],
  'budget.monthlyUsd': [500_000, 1000],
  'budget.emails': [['ml@example.com'], []],
  'notifications.emails': [['ml@example.com'], ['ops@example.com']],
  'tags.CostCenter': ['1', '2'],
  'quotas.require': [[{ instanceType: 'ml.p5.48xlarge', count: 2 }], []],
  'iam.rolePath': ['/ml/', '/east/'],
};
const chosen = (which: 0 | 1) =>
  fc.subarray(Object.entries(OPTIONS)).map((options) => options.map(([at, values]) => [at, values[which]] as const));

function sections(...all: (readonly [string, unknown])[]): object {
  const made: Record<string, unknown> = {};
  for (const [at, value] of all) {
    const names = at.split('.');
    let inner = made;
    for (const name of names.slice(0, -1)) {
      inner[name] ??= {};
      inner = inner[name] as Record<string, unknown>;
    }
    inner[names.at(-1) ?? ''] = value;
  }
  return made;
}

const resolved = (above: object, below: object) =>
  resolveEnvironments({ name: 'lab', regions: { 'us-east-1': below }, ...above } as unknown as EnvironmentFile)[0];

test('an option below a region has the effect of the same option above', () => {
  fc.assert(
    fc.property(chosen(0), chosen(1), (above, below) => {
      expect(resolved(sections(...above), sections(...below))).toEqual(resolved(sections(...above, ...below), {}));
    }),
    { numRuns: draws(300) },
  );
});

test('a file system below a region replaces the one of the other kind', () => {
  const corpus = { fsxLustre: 'fs-0123456789abcdef0', directoryPath: '/abcdefgh' };
  const east = { efs: 'fs-0123456789abcdef1', directoryPath: '/data' };
  const spec = resolved(
    { storage: { fileSystems: { corpus, more: corpus } } },
    { storage: { fileSystems: { corpus: east } } },
  );
  expect(spec?.storage.fileSystems).toEqual({ corpus: east, more: corpus });
});

test('fails: an option of a team, at the place where it is written', () => {
  const { value } = loadEnvironment(`name: lab
regions: { us-west-2: {}, us-east-1: { teams: { nlp: { share: 2 } } } }
teams: { nlp: { kmsKey: "${KEY.replace('us-east-1', 'eu-west-1')}" } }
`);
  const at = new Set(checkEnvironment(value as EnvironmentFile).map((found) => found.path));
  expect([...at]).toEqual(['teams.nlp.kmsKey']);
});
