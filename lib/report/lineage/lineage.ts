import type { CheckpointOrigin } from './checkpoint-origin';

/** Something that a run began from. */
export interface LineageParent {
  /** A checkpoint of the run itself or of another one, or weights in published form. */
  kind: 'checkpoint' | 'weights';
  /** Where it lies, or the run id that `checkpoints.startFrom` names. */
  source: string;
  /** The run that made it; null where the place does not say. */
  runId: string | null;
  /** Of a checkpoint; null = the newest one, or weights. */
  step: number | null;
  /** Option or attempt that began from it: `attempt 2`, `checkpoints.startFrom`, `model.weights`. */
  by: string;
}

/** One channel of a run. */
export interface LineageChannel {
  channel: string;
  /** S3 address, or the file system as the run file names it. */
  source: string;
}

/** What one run was made from; null = not known, or it has none. */
export interface LineageRun {
  runId: string;
  name: string;
  team: string;
  state: string;
  /** sha256 of the run file with overrides and defaults, as its checkpoint says. */
  configHash: string | null;
  code: { source: string | null; sha256: string | null };
  /** Hash of driver and built-in trainer. */
  driverHash: string | null;
  /** As the checkpoint says, else the image that the environment had at the launch. */
  image: string | null;
  data: { channels: LineageChannel[]; digest: string | null };
  /** By the order of time. */
  parents: LineageParent[];
}

/** From a checkpoint, published weights or a run to everything that it was made from. */
export interface Lineage {
  /** What was asked for: a run id or an S3 address. */
  of: string;
  /** The checkpoint that was asked for, or the newest committed one of the run. */
  checkpoint: CheckpointOrigin | null;
  /** The run first, then the runs that it began from. */
  runs: LineageRun[];
  /** What could not be followed, and why. */
  notes: string[];
}
