import type { CheckpointMode, InstanceGroup, Launcher, ModelSpec, RunSpec, TrainingSpec } from './run-spec';

/**
 * job.json: what one attempt's driver must know and hyperparameters cannot carry. Written by the control plane into channel
 * `job`; read by containers/driver. The fields are fixed by contract/runtime.md, schema 1.
 */
export interface JobFile {
  schema: 1;
  environment: string;
  runId: string;
  attempt: number;
  team: string;
  configHash: string;
  launcher: Launcher;
  processesPerHost: number;
  /** `builtin`, `builtin-tokenize`, or a .py / .sh file or module inside the code archive. */
  entryPoint: string;
  arguments: string[];
  /** The user's own variables; they win over everything else. */
  env: Record<string, string>;
  /** Names in `env` that the user set: what the image bakes is not among them. */
  userPinned: string[];
  efa: RunSpec['network']['efa'];
  efaVariables: RunSpec['network']['efaVariables'];
  instanceGroups: InstanceGroup[];
  /** Groups that take part in the distributed run; empty = all. */
  trainingGroups: string[];
  mpiOptions: string;
  distribution: { library: string; collectives: string; parameters: Record<string, unknown> };
  /** `skips`: when `step` steps are done, so many global batches are left out (after a rollback). */
  training: TrainingSpec & { skips?: { step: number; batches: number }[] };
  model: ModelSpec['architecture'] | null;
  weights: string | null;
  checkpoints: {
    mode: CheckpointMode;
    /** s3://..., or the folder of the checkpoint channel or CheckpointConfig. */
    uri: string;
    /** The newest complete checkpoint; '' at the start. */
    resumeFrom: string;
    keep: number;
    intervalMinutes: 'auto' | number;
    /** For `auto`: what happened to earlier attempts. Absent in a first one. */
    history?: { failures: number; nodeDays: number };
    /** The trainer takes the markers of these away before it looks for the newest. */
    rollback?: { toStep: number; beforeAttempt: number };
  };
  progress: RunSpec['progress'];
  digests: { code: string | null; requirements: string | null };
  requirements: string | null;
  maxRuntimeSeconds: number;
  heartbeatUri: string | null;
  restartsInPlace: number;
  restartSecret: string;
}
