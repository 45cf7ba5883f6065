import type { PublishedConfig } from '../catalog/model/published';
import type { TrainerLimits } from '../catalog/model/trainer-limits';
import type {
  CheckpointMode,
  HealthCheck,
  InstanceGroup,
  Launcher,
  MemoryCopies,
  ModelSpec,
  RunSpec,
  TrainingSpec,
} from './run-spec';

/** A window of the training data that is skipped: `batches` global batches before the step that follows `step`. */
export interface Skip {
  step: number;
  batches: number;
}

/** Checkpoints after `toStep` that attempts before `beforeAttempt` wrote are no longer valid. */
export interface Rollback {
  toStep: number;
  beforeAttempt: number;
}

/** Failures of a run's earlier attempts, and the node-days in which they happened. */
export interface FailureHistory {
  failures: number;
  nodeDays: number;
}

/** UUIDs of GPUs: those on which a job must not start, and those that get the full health check. */
export interface KnownGpus {
  bad: string[];
  suspect: string[];
}

/**
 * job.json: information for the driver of one attempt that hyperparameters cannot contain. Written by the control plane to channel `job`;
 * read by containers/driver. The fields are defined in docs/reference/runtime.md, schema 1.
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
  /** `builtin`, `builtin-tokenize`, `builtin-fetch`, or a .py / .sh file or module inside the code archive. */
  entryPoint: string;
  arguments: string[];
  /** The user's own variables, which take precedence over all others. */
  env: Record<string, string>;
  /** Names of variables in `env` that the user set, without those of the image. */
  userPinned: string[];
  /** Variable names, each with the secret or parameter that contains the value. Absent: none. */
  secrets?: Record<string, string>;
  efa: RunSpec['network']['efa'];
  efaVariables: RunSpec['network']['efaVariables'];
  instanceGroups: InstanceGroup[];
  /** Groups that take part in the distributed run; empty = all. */
  trainingGroups: string[];
  mpiOptions: string;
  distribution: { library: string; collectives: string; parameters: Record<string, unknown> };
  /** `skips`: windows that rollbacks have skipped. */
  training: TrainingSpec & { skips?: readonly Readonly<Skip>[] };
  /**
   * For the built-in trainer also what follows from the architecture (trainedModel), with its `limits`. `published`: how files of weights
   * describe the model; absent: the run reads and writes none.
   */
  model: (ModelSpec['architecture'] & { limits?: TrainerLimits; published?: PublishedConfig[] }) | null;
  weights: string | null;
  checkpoints: {
    mode: CheckpointMode;
    /** s3://..., or the folder of the checkpoint channel or CheckpointConfig. */
    uri: string;
    /** The newest complete checkpoint; '' when there is none. */
    resumeFrom: string;
    /** What a program of a user writes last into a checkpoint. Absent: not known. */
    committedMarker?: string;
    keep: number;
    intervalMinutes: 'auto' | number;
    /** Absent: no copies in memory. */
    memory?: MemoryCopies;
    /** For `auto`: failures of earlier attempts. Absent in a first attempt. */
    history?: FailureHistory;
    /** The trainer deletes the markers of these checkpoints before it searches for the newest. */
    rollback?: Rollback;
  };
  progress: RunSpec['progress'];
  digests: { code: string | null; requirements: string | null };
  requirements: string | null;
  maxRuntimeSeconds: number;
  heartbeatUri: string | null;
  /** Where the driver polls for the request to save and exit. Absent: there are no such requests. */
  handOverUri?: string;
  /** Prefix of the team for compiled code that later attempts use. Absent: it is not kept. */
  compileCacheUri?: string;
  restartsInPlace: number;
  /** Number of spare hosts, which wait to replace a broken host; the others train. */
  spareInstances: number;
  /** Checks of the driver before the first start of the ranks. */
  healthCheck: HealthCheck;
  /** GPUs about which earlier jobs of the environment have reported. Absent: none is known. */
  knownGpus?: KnownGpus;
  restartSecret: string;
}
