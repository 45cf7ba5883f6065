// Zones come, go and change their order in the environment file while the network is there.
import { Template } from 'aws-cdk-lib/assertions';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { TrainingNetwork, type TrainingNetworkProps } from '../../lib/cdk';
import { resourcesOf, SYNTH_MS, testStack } from '../cdk/support/app';
import { madeBy, overlap, type Resources } from './support/changes';

vi.setConfig({ testTimeout: SYNTH_MS });

type Network = Pick<TrainingNetworkProps, 'mode' | 'availabilityZoneIds'>;

const NAMES = ['us-west-2a', 'us-west-2b', 'us-west-2c', 'us-west-2d'];
const IDS = [1, 2, 3, 4, 5, 6].map((n) => `usw2-az${n}`);

/** Templates of a network, each made once. */
const made = new Map<string, Resources>();
function networkOf(network: Network, names = NAMES): Resources {
  const key = JSON.stringify([network, names]);
  const known = made.get(key);
  if (known) return known;
  const stack = testStack({ 'availability-zones:account=111122223333:region=us-west-2': names });
  new TrainingNetwork(stack, 'Network', { prefix: 'slipway-research', ...network });
  const resources = resourcesOf(Template.fromStack(stack));
  made.set(key, resources);
  return resources;
}

const subnetsOf = (resources: Resources) =>
  Object.entries(resources).filter(([, { Type }]) => Type === 'AWS::EC2::Subnet');
const zoneOf = ({ Properties }: Resources[string]) =>
  String(Properties.AvailabilityZoneId ?? Properties.AvailabilityZone);
const vpcOf = ({ Properties }: Resources[string]) => (Properties.VpcId as { Ref: string }).Ref;

/** Pairs of subnets of one VPC that share addresses while both exist. */
function conflicts(before: Resources, after: Resources): string[] {
  const isStaying = (vpc: string) => Boolean(before[vpc]) && !madeBy(before, after).some(({ id }) => id === vpc);
  const existing = [...subnetsOf(before), ...subnetsOf(after).filter(([id]) => !before[id])];
  return madeBy(before, after).flatMap(({ id, resource }) => {
    if (resource.Type !== 'AWS::EC2::Subnet') return [];
    return existing.flatMap(([other, there]) => {
      const isSame = other === id && !before[id];
      const isBeside = vpcOf(there) === vpcOf(resource) && (isStaying(vpcOf(resource)) || !before[other]);
      const shares = overlap(String(there.Properties.CidrBlock), String(resource.Properties.CidrBlock));
      return !isSame && isBeside && shares ? [`${id} ${zoneOf(resource)} and ${other} ${zoneOf(there)}`] : [];
    });
  });
}

/** Subnets of jobs in zones of both networks that did not keep their resource. */
function moved(before: Resources, after: Resources): string[] {
  const fresh = new Set(madeBy(before, after).map(({ id }) => id));
  const zonesBefore = new Set(subnetsOf(before).map(([, subnet]) => zoneOf(subnet)));
  const stays = subnetsOf(after).filter(([, subnet]) => zonesBefore.has(zoneOf(subnet)));
  return stays.filter(([id]) => fresh.has(id)).map(([id, subnet]) => `${id} ${zoneOf(subnet)}`);
}

const zoneSets = fc.array(fc.shuffledSubarray(IDS, { minLength: 1 }), { minLength: 2, maxLength: 5 });
const mode = fc.constantFrom('vpc-locked' as const, 'vpc-nat' as const);

describe('zones by id', () => {
  test('one that stays keeps its subnets, and one that comes overlaps none, whatever comes, goes or is reordered', () => {
    fc.assert(
      fc.property(zoneSets, mode, (sets, mode) => {
        const templates = sets.map((availabilityZoneIds) => networkOf({ mode, availabilityZoneIds }));
        for (const [i, after] of templates.entries()) {
          const before = templates[i - 1];
          if (before) expect([...conflicts(before, after), ...moved(before, after)]).toEqual([]);
        }
      }),
      { numRuns: 4, verbose: 1 },
    );
  });

  test('a change of order alone changes nothing at all', () => {
    const before = networkOf({ mode: 'vpc-nat', availabilityZoneIds: ['usw2-az1', 'usw2-az3', 'usw2-az2'] });
    expect(networkOf({ mode: 'vpc-nat', availabilityZoneIds: ['usw2-az3', 'usw2-az2', 'usw2-az1'] })).toEqual(before);
  });
});

describe('zones by name', () => {
  test('a zone that the Region adds, or that the account loses, moves no other', () => {
    fc.assert(
      fc.property(
        fc.array(fc.subarray(NAMES, { minLength: 1 }), { minLength: 2, maxLength: 4 }),
        mode,
        (sets, mode) => {
          const templates = sets.map((names) => networkOf({ mode }, names));
          for (const [i, after] of templates.entries()) {
            const before = templates[i - 1];
            if (before) expect([...conflicts(before, after), ...moved(before, after)]).toEqual([]);
          }
        },
      ),
      { numRuns: 4, verbose: 1 },
    );
  });

  test.each(['vpc-locked', 'vpc-nat'] as const)(
    'from all to ids and back, %s: another VPC, and no conflict',
    (mode) => {
      const byName = networkOf({ mode });
      const byId = networkOf({ mode, availabilityZoneIds: ['usw2-az2', 'usw2-az1'] });
      expect([conflicts(byName, byId), conflicts(byId, byName)]).toEqual([[], []]);
    },
  );
});

test('a network never overlaps itself', () => {
  fc.assert(
    fc.property(fc.shuffledSubarray(IDS, { minLength: 1 }), mode, (zones, mode) => {
      expect(conflicts({}, networkOf({ mode, availabilityZoneIds: zones }))).toEqual([]);
    }),
    { numRuns: 4, verbose: 1 },
  );
});
