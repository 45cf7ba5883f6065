import type { ChannelSpec, RunSpec } from '../../config/run-spec';
import type { Finding } from '../rule';

/** Applies `find` to every channel; `at` is the path of the channel in the file. */
export const eachChannel = (run: RunSpec, find: (channel: ChannelSpec, at: string) => Finding[]): Finding[] =>
  run.data.flatMap((channel, i) => find(channel, `data[${i}]`));

/** The file system of a channel, of either kind. */
export const fileSystem = (channel: ChannelSpec) => channel.fsxLustre ?? channel.efs;

/** The key of that file system in the file. */
export const fileSystemKey = (channel: ChannelSpec) => (channel.fsxLustre ? 'fsxLustre' : 'efs');
