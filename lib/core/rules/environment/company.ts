import { nearest } from '../../catalog/nearest';
import { REGIONS } from '../../catalog/regions';
import { type EnvironmentSpec, resolveEnvironments } from '../../config/environment-file';
import { orList } from '../../config/issue';
import { when } from '../../config/rule';
import { accountOf, type EnvironmentFinding, type EnvironmentRule, environmentRule } from './environment-rule';

function regionalIds({ network, storage }: EnvironmentSpec): { path: string; id: string }[] {
  const vpcId = network.mode === 'existing' ? network.existing?.vpcId : undefined;
  const systems = Object.entries(storage.fileSystems ?? {});
  return [
    ...(vpcId ? [{ path: 'network.existing.vpcId', id: vpcId }] : []),
    ...systems.map(([name, { fsxLustre, efs }]) => ({
      path: `storage.fileSystems.${name}`,
      id: fsxLustre ?? efs ?? '',
    })),
    ...Object.entries(storage.buckets ?? {}).map(([purpose, id]) => ({ path: `storage.buckets.${purpose}`, id })),
    ...(storage.kmsKeyArn ? [{ path: 'storage.kmsKeyArn', id: storage.kmsKeyArn }] : []),
  ];
}

const ROLE_ARNS = ['permissionsBoundary', 'oidcProvider'] as const;

/** Resources that are in one account. A VPC is not: its subnets may be shared with others. */
function accountIds(spec: EnvironmentSpec): { path: string; id: string }[] {
  const keys = Object.entries(spec.teams).map(([team, { kmsKey }]) => ({ path: `teams.${team}.kmsKey`, id: kmsKey }));
  const ofRoles = ROLE_ARNS.map((option) => ({ path: `iam.${option}`, id: spec.iam[option] }));
  return [
    ...regionalIds(spec).filter(({ path }) => path.startsWith('storage.')),
    ...[...keys, ...ofRoles].flatMap(({ path, id = '' }) => (/^arn:.*:\d{12}:/.test(id) ? [{ path, id }] : [])),
  ];
}

/** A resource may have 50 tags, some of which are needed for Slipway's tags, those of a run and those that CloudFormation adds. */
const MAX_TAGS = 35;

function foreignArns(spec: EnvironmentSpec): EnvironmentFinding[] {
  const { iam, region } = spec;
  const account = accountOf(spec);
  const partition = REGIONS[region]?.partition;
  return ROLE_ARNS.flatMap((option) => {
    const arn = iam[option];
    if (!arn?.startsWith('arn:')) return [];
    const [, ownPartition, , , owner] = arn.split(':');
    return [
      ...when(partition !== undefined && ownPartition !== partition, `iam.${option}`, {
        must: `must be in partition ${partition} of ${region}`,
        fix: `write arn:${partition}:iam::...`,
      }),
      ...when(account !== undefined && owner !== account && owner !== 'aws', `iam.${option}`, {
        must: `must be in account ${account}`,
        fix:
          option === 'permissionsBoundary' ? 'write only the name of the policy' : 'use the provider in that account',
      }),
    ];
  });
}

function oidc({ iam: { oidcProvider, oidcSubjects } }: EnvironmentSpec): EnvironmentFinding[] {
  return [
    ...when(oidcProvider !== undefined && oidcSubjects === undefined, 'iam.oidcSubjects', {
      must: 'must be set with oidcProvider',
      fix: 'write oidcSubjects: ["repo:<owner>/<repository>:ref:refs/heads/main"]',
    }),
    ...when(oidcProvider === undefined && oidcSubjects !== undefined, 'iam.oidcSubjects', {
      must: 'must be used with oidcProvider',
      fix: 'add oidcProvider, or remove it',
      isIgnored: true,
    }),
  ];
}

/** Rules for regions and the runs in them, and for company-wide settings of roles, tags and secrets. */
export const COMPANY_RULES: readonly EnvironmentRule[] = [
  environmentRule('environment/region', 'error', [], ({ region }) =>
    when(!Object.hasOwn(REGIONS, region), `regions.${region}`, {
      must: 'must be a region with SageMaker images',
      got: region,
      fix: `use ${orList(nearest(region, Object.keys(REGIONS)))}`,
    }),
  ),
  environmentRule('environment/partition', 'error', ['regions'], (_, { regions }) => {
    const partitions = new Set(Object.keys(regions).flatMap((region) => REGIONS[region]?.partition ?? []));
    return when(partitions.size > 1, 'regions', {
      must: 'must be in one partition',
      got: [...partitions].join(', '),
      fix: 'write an environment file for each of them',
    });
  }),
  environmentRule('environment/region-ids', 'error', ['regions', 'network', 'storage'], (spec, file) => {
    const elsewhere = resolveEnvironments(file).filter(({ region }) => region !== spec.region);
    const taken = new Set(elsewhere.flatMap(regionalIds).map(({ id }) => id));
    return regionalIds(spec)
      .filter(({ id }) => taken.has(id))
      .map(({ path, id }) => ({
        path,
        must: 'must be set for one region only',
        got: id,
        fix: `set it under regions.<region>, for each of ${Object.keys(file.regions).join(', ')}`,
      }));
  }),
  environmentRule('environment/account-ids', 'error', ['accounts', 'iam', 'storage', 'teams'], (spec) =>
    accountIds(spec).flatMap(({ path, id }) =>
      when(Object.keys(spec.accounts ?? {}).length > 1, path, {
        must: 'must not be set with several accounts, because it is in one of them',
        got: id,
        fix:
          path === 'iam.permissionsBoundary'
            ? 'write only the name of the policy'
            : 'write an environment file with a name of its own for each account',
      }),
    ),
  ),
  environmentRule('environment/runs', 'error', ['regions', 'runs'], (_, { regions, runs: named = [] }) =>
    named.flatMap(({ region }, i) =>
      when(region !== undefined && !Object.hasOwn(regions, region), `runs[${i}].region`, {
        must: "must be one of the environment's regions",
        fix: `write region: ${orList(Object.keys(regions))}`,
      }),
    ),
  ),
  environmentRule('environment/roles', 'error', ['iam', 'account', 'accounts'], (spec) => [
    ...foreignArns(spec),
    ...oidc(spec),
  ]),
  environmentRule('environment/tags', 'error', ['tags'], ({ tags: given }) => {
    const keys = Object.keys(given);
    const lower = keys.map((key) => key.toLowerCase());
    return [
      ...when(keys.length > MAX_TAGS, 'tags', {
        must: `must be at most ${MAX_TAGS}`,
        got: keys.length,
        fix: 'remove some: a resource can have 50, and runs add their own',
      }),
      ...keys.flatMap((key, i) => [
        ...when(/^(aws|slipway):/i.test(key), `tags.${key}`, {
          must: 'must not start with aws: or slipway:',
          got: key,
          fix: 'rename it',
        }),
        ...when(lower.indexOf(key.toLowerCase()) !== i, `tags.${key}`, {
          must: `must differ from ${keys[lower.indexOf(key.toLowerCase())]} in more than case`,
          got: key,
          fix: 'keep one of them',
        }),
      ]),
    ];
  }),
  environmentRule('environment/accounts', 'error', ['account', 'accounts', 'runs'], (spec) => {
    const { account, runs, accounts: given = {} } = spec;
    const ids = Object.values(given);
    return [
      ...when(account !== undefined && ids.length > 0, 'accounts', {
        must: 'must not be given together with account',
        got: Object.keys(given),
        fix: 'keep one of the two',
      }),
      ...Object.entries(given).flatMap(([stage, id], i) =>
        when(ids.indexOf(id) !== i, `accounts.${stage}`, {
          must: 'must be a separate account: the name of an environment is unique in an account and region',
          fix: 'use another account, or an environment file with another name',
        }),
      ),
      ...runs.flatMap(({ submit }, i) =>
        when(submit === 'on-change' && ids.length > 1, `runs[${i}].submit`, {
          must: 'must be manual with several accounts: each of them would train the run',
          fix: 'launch it from the command line',
        }),
      ),
    ];
  }),
  environmentRule('environment/secrets', 'error', ['secrets', 'network', 'teams'], ({ secrets, network, teams }) => {
    const { mode, endpoints = [] } = network;
    const isUnreachable =
      secrets.allowedPrefix !== undefined &&
      mode === 'vpc-locked' &&
      !endpoints.includes('secretsmanager') &&
      !endpoints.includes('ssm');
    const prefix = secrets.allowedPrefix ?? '';
    const names = Object.keys(teams);
    const of = (name: string) => prefix.replaceAll('{team}', name);
    const owner = (name: string) => names.find((one) => one !== name && of(name).startsWith(of(one)));
    const [read] = prefix.includes('{team}') ? names.filter(owner) : [];
    return [
      ...when(isUnreachable, 'network.endpoints', {
        must: 'must contain secretsmanager or ssm, with secrets.allowedPrefix and mode vpc-locked',
        got: endpoints,
        fix: 'write endpoints: [secretsmanager], or [ssm] for parameters; each costs about 7 USD per month and zone',
      }),
      ...when(read !== undefined, 'secrets.allowedPrefix', {
        must: `must have / behind {team}: team ${owner(read ?? '')} could read the secrets of team ${read}`,
        fix: `write ${prefix.replace('{team}', '{team}/')}`,
      }),
      ...when(prefix !== '' && names.length > 1 && !prefix.includes('{team}'), 'secrets.allowedPrefix', {
        level: 'warning',
        must: 'must contain {team}, or each team can read the secrets of all',
        fix: 'add {team}/, and rename the secrets',
      }),
    ];
  }),
];
