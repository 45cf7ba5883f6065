import { isArchiveInS3 } from '../../config/code-source';
import type { Descriptor } from '../../config/descriptor';
import { allowedPlaces, fillPlaceholders, mayUsePlace, type PlaceUse, placeOf } from '../../config/formats/places';
import { orList } from '../../config/issue';
import { type Finding, type Rule, type RuleContext, rule, when } from '../../config/rule';
import type { ChannelSpec, RunSpec } from '../../config/run-spec';

/** Channels that the entrypoint contract adds to the run's own. */
const OWN_CHANNELS = ['driver', 'job', 'code'] as const;
const MAX_CHANNELS = 20;

/** Channels that the request contains in addition to the run's own. */
function reservedChannels(run: RunSpec): string[] {
  if (run.distribution.contract === 'container') return [];
  if (run.distribution.contract === 'toolkit') return run.network.isolation ? ['code'] : [];
  return [...OWN_CHANNELS, ...(run.model?.weights ? ['weights'] : [])];
}

const variableOf = (channel: string): string => `SM_CHANNEL_${channel.toUpperCase()}`;

export const CHANNEL_NAME_RULES: readonly Rule[] = [
  rule('data/channels', 'error', (run) => {
    const all = run.data.map((c) => c.channel);
    const reserved = reservedChannels(run);
    const limit = MAX_CHANNELS - reserved.length;
    return [
      ...all.flatMap((name, i) => [
        ...when(all.indexOf(name) !== i, `data[${i}].channel`, {
          must: 'must be unique (a duplicate of an earlier channel)',
          fix: 'use another name',
        }),
        ...when(/^\.\.?$/.test(name), `data[${i}].channel`, {
          must: 'must be the name of a folder below /opt/ml/input/data',
          fix: 'use another name',
        }),
        ...when(reserved.includes(name), `data[${i}].channel`, {
          must: `must not be ${orList(reserved)}, which the launcher uses`,
          fix: 'use another name',
        }),
      ]),
      ...when(all.length > limit, 'data', {
        must: `must be at most ${limit} channels (20 less the launcher's own)`,
        got: all.length,
        fix: 'combine related data under one prefix',
      }),
    ];
  }),
  rule('data/channel-variables', 'warning, may acknowledge', ({ data, code }) => {
    const all = data.map(({ channel }) => channel);
    return all.flatMap((name, i) => {
      const same = all.slice(0, i).find((other) => other !== name && variableOf(other) === variableOf(name));
      return [
        ...when(same !== undefined, `data[${i}].channel`, {
          must: `must not differ from ${same} in case alone: the folders of both would be in ${variableOf(name)}`,
          fix: 'use another name',
        }),
        ...when(code.entryPoint.endsWith('.sh') && /[.-]/.test(name), `data[${i}].channel`, {
          must: `must contain only letters, digits and underscores for a shell script, which cannot read ${variableOf(name)}`,
          fix: `use ${name.replace(/[.-]/g, '_')}, or the path /opt/ml/input/data/${name} in the script, and acknowledge it`,
        }),
      ];
    });
  }),
];

/** Applies `find` to every channel; `at` is the path of the channel in the file. */
export const eachChannel = (run: RunSpec, find: (channel: ChannelSpec, at: string) => Finding[]): Finding[] =>
  run.data.flatMap((channel, i) => find(channel, `data[${i}]`));

/** The file system of a channel, of either kind. */
export const fileSystem = (channel: ChannelSpec) => channel.fsxLustre ?? channel.efs;

/** The key of that file system in the file. */
export const fileSystemKey = (channel: ChannelSpec) => (channel.fsxLustre ? 'fsxLustre' : 'efs');

const PLACEHOLDERS = ['dataBucket', 'checkpointBucket', 'team', 'runId', 'fsx'];
/** Code is read before the run has an id. */
const CODE_PLACEHOLDERS = PLACEHOLDERS.filter((name) => name !== 'runId');

function unknownPlaceholders(path: string, uri: string, known: readonly string[]): Finding[] {
  return [...uri.matchAll(/\{([^}]*)\}/g)]
    .filter(([, name = '']) => !known.includes(name))
    .map(([text]) => ({
      path,
      must: `must use only the placeholders ${orList(known.map((p) => `{${p}}`))}`,
      got: text,
      fix: 'use one of them',
    }));
}

/** Locations of a run, except that of its code. */
function usedPlaces({ kind, data, written }: RunSpec): { path: string; uri?: string; use: PlaceUse }[] {
  return [
    ...data.map((c, i) => ({ path: `data[${i}].s3`, uri: c.s3, use: 'read' as const })),
    { path: 'checkpoints.s3', uri: written.checkpoints?.s3, use: 'checkpoints' },
    { path: 'checkpoints.startFrom', uri: written.checkpoints?.startFrom, use: 'checkpoints' },
    { path: 'output.s3', uri: written.output?.s3, use: kind === 'processing' ? 'results' : 'output' },
    // Models of a hub are in a bucket of AWS.
    { path: 'model.weights', uri: placeOf(written.model?.weights), use: 'read' },
  ];
}

/** How a message names the use of a location, and what to do about a wrong one. */
const USES: Readonly<Record<PlaceUse, { what: string; fix(team: string): string }>> = {
  read: { what: 'may read', fix: () => 'ask the platform team to add it to storage.external' },
  checkpoints: {
    what: 'keep checkpoints in',
    fix: () => 'write s3://{checkpointBucket}/runs/{team}/{runId}/, or leave it out; startFrom also takes a run id',
  },
  output: {
    what: 'may write with training jobs',
    fix: () =>
      'write below s3://{checkpointBucket}/runs/{team}/{runId}/, or ask the platform team for storage.external with access: read-write',
  },
  results: {
    what: 'may write with processing jobs',
    fix: (team) => `write below s3://{dataBucket}/teams/{team}/, or ask the platform team for teams.${team}.data`,
  },
};

/** Locations outside what the team may use in this way. */
const foreignPlaces =
  (...uses: PlaceUse[]) =>
  (run: RunSpec, { descriptor }: RuleContext): Finding[] => {
    if (!descriptor) return [];
    const { source } = run.code;
    const code = isArchiveInS3(source) ? [{ path: 'code.source', uri: source, use: 'read' as const }] : [];
    return [...usedPlaces(run), ...code].flatMap(({ path, uri, use }) => {
      if (!uri?.startsWith('s3://') || !uses.includes(use)) return [];
      const { what, fix } = USES[use];
      return when(!mayUsePlace(use, fillPlaceholders(uri, { descriptor }), descriptor), path, {
        must: `must be in a location that runs of team ${descriptor.team} ${what} (${orList(allowedPlaces(use, descriptor))})`,
        got: uri,
        fix: fix(descriptor.team),
      });
    });
  };

/** Rules for data locations: placeholders, buckets and file systems that the run may use. */
export const DATA_PLACE_RULES: readonly Rule[] = [
  rule('data/placeholders', 'error, local', (run) => {
    const { source } = run.code;
    return [
      ...usedPlaces(run).flatMap(({ path, uri = '' }) => unknownPlaceholders(path, uri, PLACEHOLDERS)),
      ...(source.startsWith('s3://') ? unknownPlaceholders('code.source', source, CODE_PLACEHOLDERS) : []),
    ];
  }),
  rule('data/foreign-bucket', 'error', foreignPlaces('read')),
  rule('data/foreign-checkpoints', 'error', foreignPlaces('checkpoints')),
  rule('data/foreign-output', 'error', foreignPlaces('results')),
  rule('data/foreign-training-output', 'error', foreignPlaces('output')),
  rule('data/foreign-mlflow', 'error', (run, { descriptor }) => {
    const arn = run.observability.mlflow?.arn;
    if (arn === undefined || !descriptor) return [];
    const servers = descriptor.mlflow ?? [];
    return when(!servers.includes(arn), 'observability.mlflow.arn', {
      must:
        servers.length > 0
          ? `must be one that team ${descriptor.team} may log to (${orList(servers)})`
          : `must be absent: team ${descriptor.team} may log to no MLflow server`,
      fix: `ask the platform team to add it to teams.${descriptor.team}.mlflow`,
    });
  }),
  rule('data/foreign-file-system', 'error', (run, { descriptor }) => {
    if (!descriptor) return [];
    const ids = Object.values(descriptor.fileSystems ?? {}).flatMap((f) =>
      [f.id, f.fsxLustre, f.efs].filter((id) => id !== undefined),
    );
    return eachChannel(run, (channel, at) => {
      const id = fileSystem(channel)?.fileSystemId;
      if (id === undefined) return [];
      const isUnknown = id === '{fsx}' ? ids.length === 0 : !ids.includes(id);
      return when(isUnknown, `${at}.${fileSystemKey(channel)}.fileSystemId`, {
        must: 'must be a file system of the environment',
        fix: ids.length > 0 ? `use ${orList(ids)}` : 'ask the platform team to add it to storage.fileSystems',
      });
    });
  }),
  /** SageMaker mounts a directory by its whole path, which for FSx for Lustre begins with the mount name of the file system. */
  rule('data/foreign-directory', 'error', (run, { descriptor }) => {
    if (!descriptor) return [];
    const systems = Object.values(descriptor.fileSystems ?? {});
    return eachChannel(run, (channel, at) => {
      const given = fileSystem(channel);
      const id = given && fillPlaceholders(given.fileSystemId, { descriptor });
      const system = systems.find((f) => [f.id, f.fsxLustre, f.efs].includes(id));
      const root = system?.directoryPath;
      if (!given || root === undefined) return [];
      const directory = fillPlaceholders(given.directoryPath, { descriptor });
      const folder = root.replace(/\/$/, '');
      const isBelow =
        directory === folder || (directory.startsWith(`${folder}/`) && !directory.split('/').includes('..'));
      const isOwn = !system?.isShared || isOwnFolder(directory.slice(folder.length + 1), given.access, descriptor);
      const verb = given.access === 'rw' ? 'write' : 'read';
      const path = `${at}.${fileSystemKey(channel)}.directoryPath`;
      return [
        ...when(!isBelow, path, {
          must: `must be ${root} or a folder below it, which is what jobs may mount of ${id}`,
          fix: given.fileSystemId === '{fsx}' ? 'begin it with {fsxPath}' : `begin it with ${root}`,
        }),
        ...when(isBelow && !isOwn, path, {
          must: `must be a folder of {fsxPath}/data that team ${descriptor.team} may ${verb} in the data bucket, or below {fsxPath}/teams/${descriptor.team}`,
          fix: 'use {fsxPath}/data/teams/{team}, which exists as soon as the data bucket has an object below teams/{team}/',
        }),
      ];
    });
  }),
];

/**
 * Whether a team may mount a folder of the file system that the stack makes: what it could use in the data bucket, to which `data` is
 * linked. No permission of IAM applies to its files, so that a folder above those of the teams is not one.
 */
function isOwnFolder(folder: string, access: string | undefined, descriptor: Descriptor): boolean {
  if (`${folder}/`.startsWith(`teams/${descriptor.team}/`)) return true;
  const place = /^data\/+(.*?[^/])\/*$/.exec(folder)?.[1];
  if (place === undefined || place === 'teams') return false;
  return mayUsePlace(access === 'rw' ? 'results' : 'read', `s3://${descriptor.dataBucket}/${place}/`, descriptor);
}
