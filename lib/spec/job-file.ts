import type {
  CheckpointMode,
  HealthCheck,
  InstanceGroup,
  Launcher,
  ModelSpec,
  RunSpec,
  TrainingSpec,
} from './run-spec';

/** A window of the training data that is left out: before step `step` (as many are done), `batches` global batches. */
export interface Skip {
  step: number;
  batches: number;
}

/** Checkpoints beyond `toStep` that attempts before `beforeAttempt` wrote do not count any more. */
export interface Rollback {
  toStep: number;
  beforeAttempt: number;
}

/** Failures of a run's earlier attempts, and the node-days in which they came. */
export interface FailureHistory {
  failures: number;
  nodeDays: number;
}

/**
 * job.json: what one attempt's driver must know and hyperparameters cannot carry. Written by the control plane into channel
 * `job`; read by containers/driver. The fields are fixed by docs/reference/runtime.md, schema 1.
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
  /** Name of a variable, and the secret or parameter that holds its value. Absent: none. */
  secrets?: Record<string, string>;
  efa: RunSpec['network']['efa'];
  efaVariables: RunSpec['network']['efaVariables'];
  instanceGroups: InstanceGroup[];
  /** Groups that take part in the distributed run; empty = all. */
  trainingGroups: string[];
  mpiOptions: string;
  distribution: { library: string; collectives: string; parameters: Record<string, unknown> };
  /** `skips`: windows that rollbacks have left out. */
  training: TrainingSpec & { skips?: Skip[] };
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
    history?: FailureHistory;
    /** The trainer takes the markers of these away before it looks for the newest. */
    rollback?: Rollback;
  };
  progress: RunSpec['progress'];
  digests: { code: string | null; requirements: string | null };
  requirements: string | null;
  maxRuntimeSeconds: number;
  heartbeatUri: string | null;
  /** Where the driver looks whether the attempt is asked to save and leave. Absent: it never is. */
  handOverUri?: string;
  restartsInPlace: number;
  /** Hosts of the job that wait to take a broken one's place; the others train. */
  spareInstances: number;
  /** What the driver examines before the ranks start for the first time. */
  healthCheck: HealthCheck;
  restartSecret: string;
}
