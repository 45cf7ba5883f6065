import type { ChannelSpec, RunSpec } from '../../spec/run-spec';
import type { Finding } from '../rule';

/** What `find` finds of every channel; `at` is its place in the file. */
export const eachChannel = (run: RunSpec, find: (channel: ChannelSpec, at: string) => Finding[]): Finding[] =>
  run.data.flatMap((channel, i) => find(channel, `data[${i}]`));

/** The file system of a channel, whichever kind it is. */
export const fileSystem = (channel: ChannelSpec) => channel.fsxLustre ?? channel.efs;

/** How the file writes that file system. */
export const fileSystemKey = (channel: ChannelSpec) => (channel.fsxLustre ? 'fsxLustre' : 'efs');
