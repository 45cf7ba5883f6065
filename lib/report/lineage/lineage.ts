import type { CheckpointOrigin } from './checkpoint-origin';

/** A checkpoint or weights that a run started from. */
export interface LineageParent {
  /** A checkpoint of this or another run, or published weights. */
  kind: 'checkpoint' | 'weights';
  /** Location, or the run id in `checkpoints.startFrom`. */
  source: string;
  /** The run that wrote it; null when the location does not contain it. */
  runId: string | null;
  /** Step of a checkpoint; null = the newest checkpoint, or weights. */
  step: number | null;
  /** Option or attempt that started from it: `attempt 2`, `checkpoints.startFrom`, `model.weights`. */
  by: string;
}

/** One channel of a run. */
export interface LineageChannel {
  channel: string;
  /** S3 URI, or the file system as in the run file. */
  source: string;
}

/** The origin of one run; null = not known or none. */
export interface LineageRun {
  runId: string;
  name: string;
  team: string;
  state: string;
  /** sha256 of the run file including overrides and defaults, from its checkpoint. */
  configHash: string | null;
  code: { source: string | null; sha256: string | null };
  /** Hash of driver and built-in trainer. */
  driverHash: string | null;
  /** From the checkpoint, otherwise the environment's image at launch. */
  image: string | null;
  data: { channels: LineageChannel[]; digest: string | null };
  /** In chronological order. */
  parents: LineageParent[];
}

/** The complete origin of a checkpoint, published weights or a run. */
export interface Lineage {
  /** The requested run id or S3 URI. */
  of: string;
  /** The requested checkpoint, or the newest committed one of the run. */
  checkpoint: CheckpointOrigin | null;
  /** The run itself, followed by the runs that it started from. */
  runs: LineageRun[];
  /** Origins that could not be determined, with the reason. */
  notes: string[];
}
