import { orList } from '../../spec/issue';
import type { RunSpec } from '../../spec/run-spec';
import { type Finding, type Rule, type RuleContext, when } from '../rule';
import { eachChannel, fileSystem, fileSystemKey } from './channels';

const PLACEHOLDERS = ['dataBucket', 'checkpointBucket', 'team', 'runId', 'fsx'];
/** Code is read before the run has an id. */
const CODE_PLACEHOLDERS = PLACEHOLDERS.filter((name) => name !== 'runId');

/** All S3 URIs of the file, with their paths. */
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
  const { source } = run.code;
  return [
    ...s3Uris(run).flatMap((place) => unknownPlaceholders(place, PLACEHOLDERS)),
    ...(source.startsWith('s3://') ? unknownPlaceholders({ path: 'code.source', uri: source }, CODE_PLACEHOLDERS) : []),
  ];
}

function unknownPlaceholders({ path, uri }: { path: string; uri: string }, known: readonly string[]): Finding[] {
  return [...uri.matchAll(/\{([^}]*)\}/g)]
    .filter(([, name = '']) => !known.includes(name))
    .map(([text]) => ({
      path,
      must: `must use only the placeholders ${orList(known.map((p) => `{${p}}`))}`,
      got: text,
      fix: 'use one of them',
    }));
}

const bucketOf = (uri: string) => /^s3:\/\/([^/]+)/.exec(uri)?.[1] ?? '';

/** A bucket that is neither the environment's nor declared as external cannot be read by the role. */
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

/** The team's role may write only to these prefixes of the data bucket. */
function foreignOutput(run: RunSpec, { descriptor }: RuleContext): Finding[] {
  const uri = run.output?.s3;
  if (run.kind !== 'processing' || uri === undefined || !descriptor?.writableData) return [];
  const key = /^s3:\/\/([^/]+)\/?(.*)$/.exec(uri.replaceAll('{dataBucket}', descriptor.dataBucket));
  if (key?.[1] !== descriptor.dataBucket) return [];
  const prefix = (key[2] ?? '').replaceAll('{team}', descriptor.team);
  return when(!descriptor.writableData.some((own) => prefix.startsWith(own)), {
    path: 'output.s3',
    must: `must be in a prefix of the data bucket that team ${descriptor.team} may write (${orList(descriptor.writableData)})`,
    got: uri,
    fix: `write below s3://{dataBucket}/teams/{team}/, or ask the platform team for teams.${descriptor.team}.data`,
  });
}

/** Training jobs write to the checkpoint prefix of their team, and to external locations with write access. */
function foreignTrainingOutput(run: RunSpec, { descriptor }: RuleContext): Finding[] {
  const uri = run.output?.s3;
  if (run.kind !== 'training' || uri === undefined || !descriptor) return [];
  const filled = uri
    .replaceAll('{checkpointBucket}', descriptor.checkpointBucket)
    .replaceAll('{dataBucket}', descriptor.dataBucket)
    .replaceAll('{team}', descriptor.team);
  const own = `s3://${descriptor.checkpointBucket}/runs/${descriptor.team}/`;
  const writable = (descriptor.external ?? []).filter(({ access }) => access === 'read-write').map(({ s3 }) => s3);
  return when(![own, ...writable].some((prefix) => filled.startsWith(prefix)), {
    path: 'output.s3',
    must: `must be in a location that training jobs of team ${descriptor.team} may write (${orList([own, ...writable])})`,
    got: uri,
    fix: 'write below s3://{checkpointBucket}/runs/{team}/{runId}/, or ask the platform team for storage.external with access: read-write',
  });
}

function foreignHubs(run: RunSpec, { descriptor }: RuleContext): Finding[] {
  if (!descriptor) return [];
  const hubs = descriptor.hubs ?? [];
  return eachChannel(run, ({ hubContentArn: arn }, at) =>
    when(arn !== undefined && !hubs.includes(hubOf(arn)), {
      path: `${at}.hubContentArn`,
      must:
        hubs.length > 0
          ? `must be a model of a hub of the environment (${orList(hubs)})`
          : 'must be absent: the environment names no hubs',
      got: arn,
      fix: 'ask the platform team to add its hub to storage.hubs',
    }),
  );
}

/** ARN of the hub that a model belongs to. */
const hubOf = (contentArn: string): string =>
  contentArn.replace(/:hub-content\/([^/]+)\/.*$/, (_, hub: string) => `:hub/${hub}`);

function foreignMlflow(run: RunSpec, { descriptor }: RuleContext): Finding[] {
  const arn = run.observability.mlflow?.arn;
  if (arn === undefined || !descriptor?.mlflow) return [];
  return when(!descriptor.mlflow.includes(arn), {
    path: 'observability.mlflow.arn',
    must:
      descriptor.mlflow.length > 0
        ? `must be one that team ${descriptor.team} may log to (${orList(descriptor.mlflow)})`
        : `must be absent: team ${descriptor.team} may log to no MLflow server`,
    got: arn,
    fix: `ask the platform team to add it to teams.${descriptor.team}.mlflow`,
  });
}

function foreignFileSystems(run: RunSpec, { descriptor }: RuleContext): Finding[] {
  if (!descriptor) return [];
  const known = descriptor.fileSystems;
  const ids = Object.values(known ?? {}).flatMap((f) => [f.id, f.fsxLustre, f.efs].filter((id) => id !== undefined));
  return eachChannel(run, (channel, at) => {
    const id = fileSystem(channel)?.fileSystemId;
    if (id === undefined) return [];
    // A descriptor without a list of file systems does not forbid any; but it has no value for {fsx}.
    return when(id === '{fsx}' ? ids.length === 0 : known !== undefined && !ids.includes(id), {
      path: `${at}.${fileSystemKey(channel)}.fileSystemId`,
      must: 'must be a file system of the environment',
      got: id,
      fix: ids.length > 0 ? `use ${orList(ids)}` : 'ask the platform team to add it to storage.fileSystems',
    });
  });
}

/** Rules for data locations: placeholders, buckets and file systems that the run may use. */
export const DATA_PLACE_RULES: readonly Rule[] = [
  {
    id: 'data/placeholders',
    level: 'error',
    isLocal: true,
    what: 'Only known placeholders are used.',
    why: 'An unknown placeholder would become part of the URI.',
    source: 'docs/reference/run-file.md',
    check: placeholders,
  },
  {
    id: 'data/foreign-bucket',
    level: 'error',
    what: 'Data is in a bucket of the environment or in a declared external bucket.',
    why: 'The execution role cannot read other buckets.',
    source: 'docs/decisions/0007-where-sources-differ.md',
    check: foreignBuckets,
  },
  {
    id: 'data/foreign-output',
    level: 'error',
    what: 'A processing run writes only to prefixes of the data bucket that its team may write.',
    why: 'Writes of the processing role to other locations are denied, after the processing is complete.',
    source: 'docs/environment.md',
    check: foreignOutput,
  },
  {
    id: 'data/foreign-training-output',
    level: 'error',
    what: 'A training run writes its output to a location that the role of its team may write.',
    why: 'Otherwise the upload at the end of the job would be denied, after the training is complete.',
    source: 'docs/environment.md',
    check: foreignTrainingOutput,
  },
  {
    id: 'data/foreign-hub',
    level: 'error',
    what: 'Models come from hubs that the environment declares.',
    why: 'The roles of the team may not read other hubs.',
    source: 'docs/reference/environment-file.md',
    check: foreignHubs,
  },
  {
    id: 'data/foreign-mlflow',
    level: 'error',
    what: 'The MLflow server is one that the environment declares for the team.',
    why: 'The roles of the team may not call other servers.',
    source: 'docs/environment.md',
    check: foreignMlflow,
  },
  {
    id: 'data/foreign-file-system',
    level: 'error',
    what: 'The file system is one that the environment declares.',
    why: 'The security group does not allow access to other file systems.',
    source: 'docs/decisions/0007-where-sources-differ.md',
    check: foreignFileSystems,
  },
];
