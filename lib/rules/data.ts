import { orList } from '../spec/issue';
import type { ChannelSpec, RunSpec } from '../spec/run-spec';
import { api, type Finding, guide, type Rule, type RuleContext, when } from './rule';

/** Channels that the entrypoint contract adds to the run's own. */
export const OWN_CHANNELS = ['driver', 'job', 'code'] as const;
const MAX_CHANNELS = 20;

const each = (run: RunSpec, find: (channel: ChannelSpec, at: string) => Finding[]): Finding[] =>
  run.data.flatMap((channel, i) => find(channel, `data[${i}]`));

const fileSystem = (channel: ChannelSpec) => channel.fsxLustre ?? channel.efs;
const fileSystemKey = (channel: ChannelSpec) => (channel.fsxLustre ? 'fsxLustre' : 'efs');

/** Channels that the request will have besides the run's own. */
function reservedChannels(run: RunSpec): string[] {
  if (run.distribution.contract === 'toolkit') return run.network.isolation ? ['code'] : [];
  return [...OWN_CHANNELS, ...(run.model?.weights ? ['weights'] : [])];
}

function names(run: RunSpec): Finding[] {
  const all = run.data.map((c) => c.channel);
  const reserved = reservedChannels(run);
  const limit = MAX_CHANNELS - reserved.length;
  return [
    ...all.flatMap((name, i) => [
      ...when(all.indexOf(name) !== i, {
        path: `data[${i}].channel`,
        must: 'must be unique (a duplicate of an earlier channel)',
        got: name,
        fix: 'use another name',
      }),
      ...when(reserved.includes(name), {
        path: `data[${i}].channel`,
        must: `must not be ${orList(reserved)}, which the launcher uses`,
        got: name,
        fix: 'use another name',
      }),
    ]),
    ...when(all.length > limit, {
      path: 'data',
      must: `must be at most ${limit} channels (20 less the launcher's own)`,
      got: all.length,
      fix: 'put related data under one prefix',
    }),
  ];
}

function oneSource(run: RunSpec): Finding[] {
  return each(run, (channel, at) => {
    const given = (['s3', 'fsxLustre', 'efs'] as const).filter((key) => channel[key] !== undefined);
    return when(given.length !== 1, {
      path: at,
      must: 'must name exactly one of s3, fsxLustre or efs',
      got: given.length === 0 ? 'none' : given,
      fix: 'keep one',
    });
  });
}

function fastFile(channel: ChannelSpec, at: string): Finding[] {
  const type = channel.s3DataType ?? 'S3Prefix';
  return when(channel.inputMode === 'FastFile' && type !== 'S3Prefix', {
    path: `${at}.s3DataType`,
    must: 'must be S3Prefix with inputMode FastFile',
    got: type,
    fix: type === 'ManifestFile' ? 'use inputMode File' : 'use inputMode Pipe',
  });
}

function augmented(channel: ChannelSpec, at: string): Finding[] {
  if (channel.s3DataType !== 'AugmentedManifestFile') {
    return when(channel.attributeNames !== undefined, {
      path: `${at}.attributeNames`,
      must: 'must go with s3DataType AugmentedManifestFile',
      got: channel.attributeNames,
      fix: 'remove it',
    });
  }
  return [
    ...when(!channel.attributeNames?.length, {
      path: `${at}.attributeNames`,
      must: 'must be given with AugmentedManifestFile',
      fix: 'name the attributes to pass, for example [text]',
    }),
    ...when((channel.inputMode ?? 'File') === 'File', {
      path: `${at}.inputMode`,
      level: 'warning',
      must: 'must be Pipe with AugmentedManifestFile',
      got: channel.inputMode ?? 'File (default)',
      fix: 'use Pipe',
    }),
  ];
}

function fileSystems(channel: ChannelSpec, at: string): Finding[] {
  const fs = fileSystem(channel);
  if (!fs) return [];
  const key = fileSystemKey(channel);
  const s3Only = (['inputMode', 's3DataType', 's3DataDistribution', 'attributeNames', 'shuffleSeed'] as const).filter(
    (option) => channel[option] !== undefined && !(option === 'inputMode' && channel.inputMode === 'File'),
  );
  return [
    ...when(!fs.directoryPath.startsWith('/'), {
      path: `${at}.${key}.directoryPath`,
      must: 'must begin with /',
      got: fs.directoryPath,
      fix: `use /${fs.directoryPath}`,
    }),
    ...s3Only.map((option) => ({
      path: `${at}.${option}`,
      must: 'must go with s3, not with a file system',
      got: channel[option],
      fix: 'remove it',
    })),
  ];
}

function needsVpc(run: RunSpec, { descriptor }: RuleContext): Finding[] {
  if (!descriptor || descriptor.subnetIds.length > 0) return [];
  return each(run, (channel, at) =>
    when(fileSystem(channel) !== undefined, {
      path: `${at}.${fileSystemKey(channel)}`,
      must: 'must be in an environment with a VPC: FSx and EFS are reached through subnets',
      got: `environment ${descriptor.name} without subnets`,
      fix: 'use an environment with network.mode vpc-locked, or S3',
    }),
  );
}

function channelGroups(run: RunSpec): Finding[] {
  const known = run.compute.instanceGroups.map((g) => g.name);
  const naming = run.data.filter((c) => c.instanceGroups).length;
  const mixed = naming > 0 && naming < run.data.length;
  return each(run, (channel, at) => [
    ...when(mixed && !channel.instanceGroups, {
      path: `${at}.instanceGroups`,
      must: 'must be given on every channel or on none',
      fix: `add instanceGroups: [${known[0] ?? 'gpu'}]`,
    }),
    ...(channel.instanceGroups ?? []).flatMap((name, j) =>
      when(!known.includes(name), {
        path: `${at}.instanceGroups[${j}]`,
        must:
          known.length > 0
            ? `must be a group of compute.instanceGroups (${orList(known)})`
            : 'must go with compute.instanceGroups',
        got: name,
        fix: known.length > 0 ? 'use one of them' : 'remove it',
      }),
    ),
  ]);
}

const PLACEHOLDERS = ['dataBucket', 'checkpointBucket', 'team', 'runId', 'fsx'];

/** Every S3 URI of the file, with its path. */
function s3Uris(run: RunSpec): { path: string; uri: string }[] {
  const { written } = run;
  const candidates: [string, string | undefined][] = [
    ...run.data.map((c, i): [string, string | undefined] => [`data[${i}].s3`, c.s3]),
    ['checkpoints.s3', written.checkpoints?.s3],
    ['checkpoints.startFrom', written.checkpoints?.startFrom],
    ['output.s3', written.output?.s3],
    ['model.weights', written.model?.weights],
  ];
  return candidates.flatMap(([path, uri]) => (uri === undefined ? [] : [{ path, uri }]));
}

function placeholders(run: RunSpec): Finding[] {
  return s3Uris(run).flatMap(({ path, uri }) =>
    [...uri.matchAll(/\{([^}]*)\}/g)]
      .filter(([, name = '']) => !PLACEHOLDERS.includes(name))
      .map(([text]) => ({
        path,
        must: `must use only the placeholders ${orList(PLACEHOLDERS.map((p) => `{${p}}`))}`,
        got: text,
        fix: 'use one of them',
      })),
  );
}

const bucketOf = (uri: string) => /^s3:\/\/([^/]+)/.exec(uri)?.[1] ?? '';

/** decisions.md, "own data": a bucket that is neither the environment's nor declared external cannot be read by the role. */
function foreignBuckets(run: RunSpec, { descriptor }: RuleContext): Finding[] {
  const external = descriptor?.external;
  if (!descriptor || !external) return [];
  const own = [descriptor.dataBucket, descriptor.checkpointBucket, descriptor.artifactBucket];
  return s3Uris(run)
    .filter(({ uri }) => uri.startsWith('s3://') && !uri.startsWith('s3://{') && !own.includes(bucketOf(uri)))
    .filter(({ uri }) => !external.some((e) => uri.startsWith(e.s3)))
    .map(({ path, uri }) => ({
      path,
      must: 'must be a bucket of the environment, or one of its storage.external',
      got: uri,
      fix: 'ask the platform team to add it to storage.external',
    }));
}

function foreignFileSystems(run: RunSpec, { descriptor }: RuleContext): Finding[] {
  if (!descriptor) return [];
  const known = descriptor.fileSystems;
  const ids = Object.values(known ?? {}).flatMap((f) => [f.id, f.fsxLustre, f.efs].filter((id) => id !== undefined));
  return each(run, (channel, at) => {
    const id = fileSystem(channel)?.fileSystemId;
    if (id === undefined) return [];
    // A descriptor that lists no file systems forbids none; it only has none to put in for {fsx}.
    return when(id === '{fsx}' ? ids.length === 0 : known !== undefined && !ids.includes(id), {
      path: `${at}.${fileSystemKey(channel)}.fileSystemId`,
      must: 'must be a file system of the environment',
      got: id,
      fix: ids.length > 0 ? `use ${orList(ids)}` : 'ask the platform team to add it to storage.fileSystems',
    });
  });
}

export const DATA_RULES: readonly Rule[] = [
  {
    id: 'data/channels',
    level: 'error',
    what: "Channel names are unique, not the launcher's own, and at most 20 in all.",
    why: 'A channel is mounted at /opt/ml/input/data/<name>.',
    source: api('Channel'),
    check: names,
  },
  {
    id: 'data/source',
    level: 'error',
    isLocal: true,
    what: 'A channel has one source.',
    why: 'The API takes one of S3 and a file system.',
    source: api('DataSource'),
    check: oneSource,
  },
  {
    id: 'data/fastfile',
    level: 'error',
    isLocal: true,
    what: 'FastFile reads S3 prefixes only.',
    why: 'Manifests are not supported by the mount.',
    source: guide('model-access-training-data'),
    check: (run) => each(run, fastFile),
  },
  {
    id: 'data/augmented-manifest',
    level: 'error',
    what: 'Augmented manifests are read through Pipe and name their attributes.',
    why: 'The service refuses or ignores the others.',
    source: guide('augmented-manifest'),
    check: (run) => each(run, augmented),
  },
  {
    id: 'data/shuffle',
    level: 'warning',
    what: 'shuffleSeed acts in Pipe mode, and with manifests.',
    why: 'Shuffling belongs to Pipe; File and FastFile leave the order to the script.',
    source: api('ShuffleConfig'),
    check: (run) =>
      each(run, (c, at) =>
        when(c.shuffleSeed !== undefined && c.s3 !== undefined && (c.inputMode ?? 'File') === 'FastFile', {
          path: `${at}.shuffleSeed`,
          must: 'must go with inputMode Pipe',
          got: c.shuffleSeed,
          fix: 'shuffle in the data loader, or use Pipe',
        }),
      ),
  },
  {
    id: 'data/file-system',
    level: 'error',
    isLocal: true,
    what: 'A file system channel has an absolute directory and no S3 options.',
    why: 'The API refuses the others.',
    source: api('FileSystemDataSource'),
    check: (run) => each(run, fileSystems),
  },
  {
    id: 'data/file-system-vpc',
    level: 'error',
    what: 'FSx for Lustre and EFS need a VPC.',
    why: 'The instances mount them through the subnets.',
    source: guide('model-access-training-data'),
    check: needsVpc,
  },
  {
    id: 'data/instance-groups',
    level: 'error',
    what: 'Groups are named on every channel or on none.',
    why: 'The service refuses a mixture.',
    source: guide('train-heterogeneous-cluster'),
    check: channelGroups,
  },
  {
    id: 'data/placeholders',
    level: 'error',
    isLocal: true,
    what: 'Only known placeholders are used.',
    why: 'An unknown one would become part of the address.',
    source: 'contract/run.example.yaml',
    check: placeholders,
  },
  {
    id: 'data/foreign-bucket',
    level: 'error',
    what: 'Data lies in a bucket of the environment or in a declared external one.',
    why: 'The execution role can read no other.',
    source: 'contract/decisions.md',
    check: foreignBuckets,
  },
  {
    id: 'data/foreign-file-system',
    level: 'error',
    what: 'File systems are those of the environment.',
    why: 'The security group reaches no other.',
    source: 'contract/decisions.md',
    check: foreignFileSystems,
  },
  {
    id: 'data/fastfile-prefix',
    level: 'warning',
    what: 'A FastFile prefix ends in /.',
    why: 'FastFile needs whole folders.',
    source: guide('model-access-training-data'),
    check: (run) =>
      each(run, (c, at) =>
        when(c.inputMode === 'FastFile' && c.s3 !== undefined && !c.s3.endsWith('/'), {
          path: `${at}.s3`,
          must: 'is a whole folder when it ends in /',
          got: c.s3,
          fix: 'add a trailing /',
        }),
      ),
  },
];
