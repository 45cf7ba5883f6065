import { orList } from '../../config/issue';
import { type Finding, type Rule, rule, when } from '../../config/rule';
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

/** Rules for the names of channels. */
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
