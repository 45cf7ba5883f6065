// Laws over the templates of all environment files, held on a generated family of them: every option, in several whole files.
import { fullDiff, ResourceImpact } from '@aws-cdk/cloudformation-diff';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { changeOf } from '../../lib/control/guards/index';
import { environmentFileSchema } from '../../lib/core/config/environment-file';
import { GUARD_TYPE, guardSchema } from '../../lib/core/contracts/custom-resources';
import { OPTION_CHANGES } from '../../scripts/option-changes';
import type { TemplateResource } from '../cdk/support/app';
import {
  type EnvironmentValues,
  merged,
  partOfFamily,
  type SynthesisedTemplate,
  templateOf,
  VARIATIONS,
} from './support/family';
import { STATEFUL_TYPES } from './support/identity';

vi.setConfig({ testTimeout: 900_000 });

const RUNS = 200;
const SEED = Number(process.env.SLIPWAY_LAWS_SEED ?? Date.now() % 1_000_000);
const PART = partOfFamily(SEED);
/** What a failure needs to be seen again. */
const again = `SLIPWAY_LAWS_SEED=${SEED}`;
const settings = (numRuns: number) => ({ numRuns, seed: SEED, verbose: 1 as const });

const pairs = fc.constantFrom(
  ...PART.flatMap(({ context, variations }) =>
    variations.flatMap(({ option, values }) => {
      const files = [context, ...values.map((value) => merged(context, value))];
      return files.flatMap((from) => files.flatMap((to) => (from === to ? [] : [[option, from, to] as const])));
    }),
  ),
);

/** Types whose loss counts: those that hold data, and policies that guard it. */
const HELD: readonly string[] = [...STATEFUL_TYPES, 'AWS::S3::BucketPolicy'];
const KEPT = ['Retain', 'RetainExceptOnCreate'];
/** Properties that give a resource a name of one's own; a new one with the name of the old one cannot be made beside it. */
const NAMES =
  /^(BucketName|TableName|RepositoryName|RoleName|FunctionName|LogGroupName|TopicName|QueueName|AliasName|DashboardName|BudgetName|ManagedPolicyName|PolicyName|Name|AlarmName|ProjectName)$/;

function nameOf({ Type, Properties = {} }: TemplateResource): string | undefined {
  const inside = Type === 'AWS::Budgets::Budget' ? (Properties.Budget as Record<string, unknown>) : Properties;
  // An inline policy's name belongs to its role, a flow log's log group is where it writes.
  if (Type === 'AWS::IAM::Policy' || Type === 'AWS::EC2::FlowLog') return undefined;
  const [name] = Object.keys(inside).filter((key) => NAMES.test(key));
  return name === undefined ? undefined : `${Type} ${JSON.stringify(inside[name])}`;
}

interface Effects {
  replaced: [id: string, TemplateResource, TemplateResource][];
  /** Gone from the template, and with it from the account. */
  deleted: [id: string, TemplateResource][];
  removed: [id: string, TemplateResource][];
}

const known = new Map<SynthesisedTemplate, Map<SynthesisedTemplate, Effects>>();

/** What an update does, as the CDK's own diff tells it from AWS's resource specification. */
function effectsOf(before: SynthesisedTemplate, after: SynthesisedTemplate): Effects {
  const ofBefore = known.get(before) ?? new Map<SynthesisedTemplate, Effects>();
  known.set(before, ofBefore);
  const effects = ofBefore.get(after) ?? computeEffects(before, after);
  ofBefore.set(after, effects);
  return effects;
}

function computeEffects(before: SynthesisedTemplate, after: SynthesisedTemplate): Effects {
  const effects: Effects = { replaced: [], deleted: [], removed: [] };
  const [old, now] = [structuredClone(before), structuredClone(after)];
  for (const [id, change] of Object.entries(fullDiff(old, now).resources.changes)) {
    const [was, is] = [before.Resources[id], after.Resources[id]];
    if (was && !is) effects.removed.push([id, was]);
    if (was && !is && !KEPT.includes(String(was.DeletionPolicy))) effects.deleted.push([id, was]);
    if (was && is && change.changeImpact === ResourceImpact.WILL_REPLACE) effects.replaced.push([id, was, is]);
  }
  return effects;
}

/** Options that a file can name only beside another one, which their variations change too. */
const NAMED_WITH: Readonly<Record<string, string>> = {
  'network.wheels': 'network.packages',
  'network.codeArtifact': 'network.packages',
  'secrets.allowedPrefix': 'network.endpoints',
};

const allowed = (option: string): readonly string[] =>
  OPTION_CHANGES.filter((row) => [option, NAMED_WITH[option]].includes(row.option)).flatMap((row) => row.types);

test('one option changed replaces or deletes nothing that holds data, but what its documentation says', () => {
  fc.assert(
    fc.property(pairs, ([option, from, to]) => {
      const [before, after] = [templateOf(from), templateOf(to)];
      if (!before || !after) return;
      const { replaced, removed } = effectsOf(before, after);
      const lost = [
        ...replaced.map(([id, { Type }]) => `${Type} ${id}`),
        ...removed.map(([id, { Type }]) => `${Type} ${id}`),
      ];
      const held = lost.filter((line) => HELD.includes(line.split(' ')[0] ?? ''));
      expect(
        held.filter((line) => !allowed(option).includes(line.split(' ')[0] ?? '')),
        `${option} ${again}`,
      ).toEqual([]);
    }),
    settings(RUNS),
  );
});

/** Whether the guard of replacements refuses an update before anything is replaced, runs or not. */
function isRefused(before: SynthesisedTemplate, after: SynthesisedTemplate): boolean {
  const propertiesOf = ({ Resources }: SynthesisedTemplate) =>
    Object.values(Resources).find(({ Type, Properties }) => Type === GUARD_TYPE && Properties?.guards === 'replace')
      ?.Properties;
  const [old, now] = [before, after].map((template) => guardSchema.parse(propertiesOf(template)));
  try {
    if (old && now) changeOf(old, now);
    return false;
  } catch {
    return true;
  }
}

test('a resource that is replaced has no name of its own, or another one, or the guard refuses the update', () => {
  fc.assert(
    fc.property(pairs, ([, from, to]) => {
      const [before, after] = [templateOf(from), templateOf(to)];
      if (!before || !after || isRefused(before, after)) return;
      const collisions = effectsOf(before, after).replaced.filter(
        ([, was, is]) => nameOf(was) && nameOf(was) === nameOf(is),
      );
      expect(
        collisions.map(([id]) => id),
        again,
      ).toEqual([]);
    }),
    settings(RUNS),
  );
});

/** Whether two values differ whatever references stand for: where both are written out, or in what they consist of. */
function differsForSure(was: unknown, is: unknown): boolean {
  if (isReference(was) || isReference(is)) return false;
  if (typeof was !== 'object' || typeof is !== 'object' || !was || !is) return was !== is;
  const keys = new Set([...Object.keys(was), ...Object.keys(is)]);
  return [...keys].some((key) => key in was !== key in is || differsForSure(was[key as never], is[key as never]));
}

const isReference = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).some((key) => /^(Ref|Fn::)/.test(key));

test('a version that an update publishes is that of a function that changes, whatever its references stand for', () => {
  const functionOf = ({ Resources }: SynthesisedTemplate, version: TemplateResource) =>
    Resources[(version.Properties.FunctionName as { Ref: string }).Ref]?.Properties;
  fc.assert(
    fc.property(pairs, ([option, from, to]) => {
      const [before, after] = [templateOf(from), templateOf(to)];
      if (!before || !after) return;
      const published = Object.entries(after.Resources).filter(
        ([id, { Type }]) => Type === 'AWS::Lambda::Version' && !before.Resources[id],
      );
      const same = published.filter(([, version]) => {
        const [was, is] = [functionOf(before, version), functionOf(after, version)];
        return was && !differsForSure(was, is);
      });
      expect(
        same.map(([id]) => id),
        `${option} ${again}`,
      ).toEqual([]);
    }),
    settings(RUNS),
  );
});

/** Each of these files needs two templates of its own. */
const fewFiles = fc.constantFrom(
  ...PART.flatMap(({ context, variations }) =>
    variations.slice(0, 2).map(({ values }) => merged(context, values[0] ?? {})),
  ),
);

test('what a deletion leaves can be adopted: nothing of its name is made again', () => {
  const identity = (resource: TemplateResource) =>
    resource.Type === 'AWS::S3::BucketPolicy' ? `policy of a bucket` : nameOf(resource);
  const adopting = (file: EnvironmentValues) => merged(merged(file, { storage: { retain: true, adopt: true } }), {});
  fc.assert(
    fc.property(fewFiles, (file) => {
      const [first, adopted] = [
        templateOf(merged(file, { storage: { retain: true, adopt: false } })),
        templateOf(adopting(file)),
      ];
      if (!first || !adopted) return;
      const left = Object.values(first.Resources).filter(({ DeletionPolicy }) => KEPT.includes(String(DeletionPolicy)));
      const names = new Set(left.map(identity).filter(Boolean));
      expect(names.size).toBeGreaterThan(4);
      const made = Object.values(adopted.Resources).map(identity);
      expect(made.filter((name) => names.has(name))).toEqual([]);
    }),
    settings(RUNS),
  );
});

test('with retain: false nothing stays', () => {
  fc.assert(
    fc.property(fewFiles, (file) => {
      const template = templateOf(merged(file, { storage: { retain: false, adopt: false } }));
      const kept = Object.entries(template?.Resources ?? {}).filter(([, r]) => KEPT.includes(String(r.DeletionPolicy)));
      expect(kept.map(([id, { Type }]) => `${Type} ${id}`)).toEqual([]);
    }),
    settings(RUNS),
  );
});

describe('the family', () => {
  test('varies every option of the schema', () => {
    const shape = environmentFileSchema.shape as unknown as Record<string, { unwrap?: () => { shape?: object } }>;
    const whole = ['teams', 'prices', 'budget'];
    const identity = ['schema', 'name', 'account', 'accounts', 'regions', 'runs'];
    const options = Object.entries(shape).flatMap(([section, type]) => {
      if (identity.includes(section)) return [];
      const members = Object.keys(type.unwrap?.().shape ?? {});
      return whole.includes(section) || members.length === 0
        ? [section]
        : members.map((member) => `${section}.${member}`);
    });
    expect(options.filter((option) => !VARIATIONS.some((variation) => variation.option === option))).toEqual([]);
  });

  test('the table of changes names options that exist', () => {
    const options = VARIATIONS.map(({ option }) => option);
    expect(OPTION_CHANGES.filter(({ option }) => !options.includes(option))).toEqual([]);
  });
});
