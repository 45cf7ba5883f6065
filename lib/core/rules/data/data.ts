import { isPinned, parseHubSource, placeOf } from '../../config/formats/places';
import { orList } from '../../config/issue';
import { type Finding, type Rule, type RuleContext, type RuleKind, rule, UNSHOWN, when } from '../../config/rule';
import type { ChannelSpec, RunSpec } from '../../config/run-spec';
import { CHANNEL_NAME_RULES, DATA_PLACE_RULES, eachChannel, fileSystem, fileSystemKey } from './data-places';

/** A rule about each channel of a run; `at` is its path. */
const channelRule = (
  id: string,
  kind: RuleKind,
  find: (channel: ChannelSpec, at: string) => Finding | Finding[],
): Rule => rule(id, kind, (run) => eachChannel(run, (channel, at) => [find(channel, at)].flat()));

/** Options that only an S3DataSource accepts. */
const S3_OPTIONS = [
  'inputMode',
  's3DataType',
  's3DataDistribution',
  'attributeNames',
  'instanceGroups',
  'shuffleSeed',
] as const;

/** An object such as `corpus/train.csv` has an extension; FastFile provides only folders. */
const namesObject = ({ s3 = '', inputMode }: ChannelSpec): boolean =>
  inputMode !== 'FastFile' && /\/[^/]+\.[A-Za-z]\w*$/.test(s3.replace(/^s3:\/\/[^/]+/, ''));

/** Findings for a prefix that selects more, or less, than one folder. SageMaker restores managed checkpoints by such a prefix too. */
function wholeFolder(channel: ChannelSpec, at: string): Finding[] {
  const { s3 = '/', s3DataType = 'S3Prefix' } = channel;
  const path = `${at}.s3`;
  const isPrefix = s3DataType === 'S3Prefix' && /^s3:\/\/[^/]+\/./.test(s3);
  if (isPrefix && /[*?]/.test(s3))
    return when(true, path, {
      must: 'should be a prefix: S3 expands no pattern, so * and ? stand for themselves',
      fix: 'end it before the pattern, or list the objects in a manifest (s3DataType: ManifestFile)',
    });
  return when(isPrefix && !s3.endsWith('/') && !namesObject(channel), path, {
    must: `should end with /, because it also selects ${s3.split('/').at(-1)}-old/ and every other key that begins so`,
    fix: 'add a trailing /, or acknowledge it',
  });
}

const sourcesOf = ({ code }: RunSpec): string[] => String(code.arguments.source ?? '').split(',');

function fetched(run: RunSpec): Finding[] {
  if (run.code.builtin !== 'builtin-fetch') return [];
  const wrong = sourcesOf(run).find((text) => parseHubSource(text.trim()) === undefined);
  return when(wrong !== undefined, 'code.arguments.source', {
    must: 'must be hf:ORG/NAME or hf:datasets/ORG/NAME, with @REVISION or without',
    got: wrong || 'nothing',
    fix: 'correct it',
  });
}

/** Hubs are on the internet; a mirror (HF_ENDPOINT) may be in the network of the jobs. */
const withoutInternet: Rule['check'] = (run, { descriptor }) => {
  if (run.code.builtin !== 'builtin-fetch') return [];
  const isCutOff =
    (descriptor?.network?.mode === 'vpc-locked' && run.environmentVariables.HF_ENDPOINT === undefined) ||
    run.network.isolation;
  return when(isCutOff, 'code.source', {
    must: 'must run in a network with internet access, or with a mirror in environmentVariables.HF_ENDPOINT',
    got: run.network.isolation ? 'network.isolation' : `${descriptor?.name} (vpc-locked)`,
    fix: `copy it through this machine: ${localCommands(run, descriptor).join('; ')}`,
  });
};

/** Commands that copy the same repositories, by the names with which runs find them. */
function localCommands(run: RunSpec, descriptor: RuleContext['descriptor']): string[] {
  const names = String(run.code.arguments.revisions ?? '').split(',');
  const place = descriptor ? ` --environment ${descriptor.name}/${descriptor.team}` : '';
  return sourcesOf(run).map((text, i) => {
    const [name = '', revision] = text.trim().split('@');
    const written = names[i] || revision;
    return `slipway fetch ${name}${written && written !== 'main' ? `@${written}` : ''}${place} --local`;
  });
}

/** Rules for data channels, and for models and data sets of a hub. */
export const DATA_RULES: readonly Rule[] = [
  ...CHANNEL_NAME_RULES,
  rule('data/source', 'error, local', (run) =>
    eachChannel(run, (channel, at) => {
      // The folder of a fetched data set has been filled in.
      const { s3, ...others } = channel;
      const written = s3 === undefined || s3 === placeOf(channel.source) ? others : channel;
      const given = (['s3', 'source', 'fsxLustre', 'efs'] as const).filter((key) => key in written);
      return when(given.length !== 1, at, {
        must: 'must set exactly one of s3, source, fsxLustre or efs',
        got: given.length === 0 ? 'none' : given,
        fix: 'keep one',
      });
    }),
  ),
  channelRule('data/fastfile', 'error, local', (channel, at) => {
    const type = channel.s3DataType ?? 'S3Prefix';
    return when(channel.inputMode === 'FastFile' && type !== 'S3Prefix', `${at}.s3DataType`, {
      must: 'must be S3Prefix with inputMode FastFile',
      fix: type === 'ManifestFile' ? 'use inputMode File' : 'use inputMode Pipe',
    });
  }),
  channelRule('data/augmented-manifest', 'error', (channel, at) => {
    if (channel.s3DataType !== 'AugmentedManifestFile') {
      return when(channel.attributeNames !== undefined, `${at}.attributeNames`, {
        must: 'must be used with s3DataType AugmentedManifestFile',
      });
    }
    return [
      ...when(!channel.attributeNames?.length, `${at}.attributeNames`, {
        must: 'must be set with AugmentedManifestFile',
        got: UNSHOWN,
        fix: 'list the attributes to pass, for example [text]',
      }),
      ...when((channel.inputMode ?? 'File') === 'File', `${at}.inputMode`, {
        level: 'warning',
        must: 'must be Pipe with AugmentedManifestFile',
        got: channel.inputMode ?? 'File (default)',
        fix: 'use Pipe',
      }),
    ];
  }),
  channelRule('data/shuffle', 'warning', (c, at) => {
    const isUnshuffled = c.shuffleSeed !== undefined && c.s3 !== undefined && (c.inputMode ?? 'File') === 'FastFile';
    return when(isUnshuffled, `${at}.shuffleSeed`, {
      must: 'must be used with inputMode Pipe',
      fix: 'shuffle in the data loader, or use Pipe',
    });
  }),
  channelRule('data/file-system', 'error, local', (channel, at) => {
    const fs = fileSystem(channel);
    if (!fs) return [];
    const key = fileSystemKey(channel);
    const s3Only = S3_OPTIONS.filter(
      (option) => channel[option] !== undefined && !(option === 'inputMode' && channel.inputMode === 'File'),
    );
    return [
      ...when(!/^(\/|\{fsxPath\})/.test(fs.directoryPath), `${at}.${key}.directoryPath`, {
        must: 'must start with /',
        fix: `use /${fs.directoryPath}`,
      }),
      ...s3Only.map((option) => ({
        path: `${at}.${option}`,
        must: 'must be used with s3, not with a file system',
      })),
    ];
  }),
  rule('data/file-system-vpc', 'error', (run, { descriptor }) => {
    if (!descriptor || descriptor.subnetIds.length > 0) return [];
    return eachChannel(run, (channel, at) =>
      when(fileSystem(channel) !== undefined, `${at}.${fileSystemKey(channel)}`, {
        must: 'must be in an environment with a VPC: FSx and EFS are reached through subnets',
        got: `environment ${descriptor.name} without subnets`,
        fix: 'use an environment with network.mode vpc-locked, or S3',
      }),
    );
  }),
  rule('data/instance-groups', 'error', (run) => {
    const known = run.compute.instanceGroups.map((g) => g.name);
    const isNaming = run.data.some((c) => c.instanceGroups);
    return eachChannel(run, (channel, at) => [
      // A file system is available on every host: the API has no groups for it.
      ...when(isNaming && !channel.instanceGroups && channel.s3 !== undefined, `${at}.instanceGroups`, {
        must: 'must be set on all channels or on none',
        fix: `add instanceGroups: [${known[0] ?? 'gpu'}]`,
      }),
      ...(channel.instanceGroups ?? []).flatMap((name, j) =>
        when(!known.includes(name), `${at}.instanceGroups[${j}]`, {
          must:
            known.length > 0
              ? `must be a group of compute.instanceGroups (${orList(known)})`
              : 'must be used with compute.instanceGroups',
          fix: known.length > 0 ? 'use one of them' : 'remove it',
        }),
      ),
    ]);
  }),
  ...DATA_PLACE_RULES,
  rule('data/whole-folder', 'warning, may acknowledge', (run) => {
    const { mode, s3 } = run.checkpoints;
    return [
      ...eachChannel(run, wholeFolder),
      ...(mode === 'managed' ? wholeFolder({ channel: '', s3, inputMode: 'FastFile' }, 'checkpoints') : []),
    ];
  }),
  /** Sources of the file that a launch has not replaced by a commit. */
  rule('data/hub-commit', 'error', ({ written: { model, data = [] } }) => {
    const named = [{ path: 'model.weights', text: model?.weights }].concat(
      data.map(({ source }, i) => ({ path: `data[${i}].source`, text: source })),
    );
    return named.flatMap(({ path, text }) => {
      const source = parseHubSource(text ?? '');
      return when(source !== undefined && !isPinned(source), path, {
        must: 'must be a fetched commit, which is looked up in an environment',
        got: text,
        fix: 'add --environment, or write the commit after @',
      });
    });
  }),
  rule('processing/fetch-source', 'error', fetched),
  rule('processing/fetch-network', 'error', withoutInternet),
];
