import type { Ledger } from '../../lifecycle/ledger';
import type { QuotaRow } from '../../quota';
import type { LineageRun } from '../lineage/lineage';

/**
 * Everything that is known of one run, as numbers: what `slipway report --json` prints and what the page shows. A part that is
 * `undefined` could not be read; `missing` says why. An empty list was read and is empty. Times are ISO 8601 in UTC.
 */
export interface RunReport {
  runId: string;
  name: string;
  team: string;
  environment: string;
  region: string;
  state: string;
  /** Why it is in this state; '' when there is nothing to say. */
  reason: string;
  /** When the numbers were read. */
  readAt: string;
  /** Newest step that was seen, newest committed step. */
  step: number | null;
  committedStep: number | null;
  /** Share of kept steps in the time since the first job was created, 0-1. */
  goodput: number | null;
  /** What the launcher has booked against the run, USD at the environment's prices. */
  spendUsd: number | null;
  attempts: ReportAttempt[];
  steps?: ReportStep[];
  /** What the model generated in the run, in the order of time; empty where the run did not ask for it. */
  samples?: ReportSample[];
  /** Losses on the evaluation channel, in the order of time; empty where the run did not evaluate. */
  evaluations?: ReportEvaluation[];
  /** How busy the GPUs were; absent where no host has told it. */
  gpus?: ReportGpus;
  checkpoints?: ReportCheckpoint[];
  ledger?: Ledger;
  timeline?: ReportEvent[];
  quotas?: QuotaRow[];
  cost?: ReportCost;
  efa?: ReportEfa[];
  /** What the run was made from; addresses as its run file writes them. Absent where the launcher does not say what it was launched with. */
  lineage?: LineageRun;
  /** What the planner says of the run, without calibration, beside what the run did. */
  speed?: ReportSpeed;
  /** Why a part could not be read, by the part's name. */
  missing: Partial<Record<ReportPart, string>>;
}

/** A part of the report that could not be read. */
export type ReportPart = 'steps' | 'checkpoints' | 'timeline' | 'quotas' | 'cost' | 'efa' | 'speed';

/** Tokens a second and GPU. */
export interface ReportSpeed {
  /** Accelerator, library and precision: what a calibration is kept for. */
  key: string;
  planned: number;
  /** 80 % interval of `planned`. */
  interval80: readonly [low: number, high: number];
  /** Median over the steady steps of the last attempt; null with too few of them. */
  measured: number | null;
  /** GiB on one GPU; absent where the plan is short of memory, because a full allocator gives back what it would hold. */
  memory?: ReportMemory;
}

/** Memory of the GPUs, in GiB. */
export interface ReportMemory {
  /** Weights, gradients and optimizer as planned, and all else. */
  state: number;
  rest: number;
  /** The most that the allocator of the first rank had reserved; null when no line says so. */
  measured: number | null;
}

/** How busy the GPUs of one host are, as nvidia-smi tells it. */
export interface ReportGpuUse {
  /** Mean over the GPUs of the host; null where they do not tell it. */
  utilizationPercent: number | null;
  /** Memory in use on the fullest GPU, and all that it has. */
  memoryGiB: number;
  totalGiB: number;
}

/**
 * The GPUs of a run: of each host the mean utilisation and the most memory over all looks; by time the mean over the hosts, of each look, or of
 * several in a row at the time of the first where there are more than 1,000.
 */
export interface ReportGpus {
  hosts: (ReportGpuUse & { host: string; looks: number })[];
  overTime: { attempt: number; at: string; utilizationPercent: number | null }[];
}

/** Instances of one type and kind. */
export interface ReportInstances {
  instanceType: string;
  count: number;
}

/** One attempt in the report. Times are ISO 8601, durations in seconds, money in USD. */
export interface ReportAttempt {
  /** From 1. */
  number: number;
  trainingJobName: string;
  /** The service's own words; '' before a job exists. */
  status: string;
  secondaryStatus: string;
  firstStep: number | null;
  lastStep: number | null;
  reason: string;
  /** When the attempt was decided, training began, and it ended. */
  intendedAt: string | null;
  startedAt: string | null;
  endedAt: string | null;
  /** What the job ran on; undefined = the job could not be described. */
  instances?: ReportInstances[];
  isSpot?: boolean;
  /** BillableTimeInSeconds of the job; null while it runs. */
  billableSeconds?: number | null;
}

/** One `step` line of rank 0; what a script does not print is absent. */
export interface ReportStep {
  attempt: number;
  at: string;
  step: number;
  loss?: number;
  tokens?: number;
  tokensPerSecondPerGpu?: number;
  mfu?: number;
  stepSeconds?: number;
  /** The most that the allocator had reserved so far. */
  memoryGiB?: number;
  /**
   * Of a mixture of experts, tokens of a layer's fullest expert over the mean of its experts: in the fullest layer, which layer with experts
   * that is (from 0), and in the mean over these layers.
   */
  expertLoad?: { most: number; layer: number; mean: number };
}

/** One `eval` line: the loss on the evaluation channel. */
export interface ReportEvaluation {
  attempt: number;
  at: string;
  step: number;
  loss: number;
}

/** One `sample` line: how the model continued the beginning of a document by greedy decoding. */
export interface ReportSample {
  attempt: number;
  at: string;
  step: number;
  /** Which of the run's prompts, from 0. */
  number: number;
  /** The continuation; empty in a damaged line. */
  tokens: number[];
  /** The prompt, the continuation, and what the data has there; absent where the run knew no tokenizer. */
  prompt?: string;
  text?: string;
  expected?: string;
}

/** One committed checkpoint: what the trainer said, what the launcher saw, what lies in the bucket. */
export interface ReportCheckpoint {
  step: number;
  attempt: number | null;
  savedAt: string | null;
  uri: string | null;
  /** Whether it lies in the bucket now, with every object that it lists; null = the bucket was not listed. */
  inBucket: 'complete' | 'incomplete' | 'removed' | null;
  objects: number | null;
  sizeBytes: number | null;
  worldSize: number | null;
  /** Time that training stood still for the save, and until it was committed. */
  blockedSeconds: number | null;
  totalSeconds: number | null;
}

/** One entry of the timeline in the report. */
export interface ReportEvent {
  at: string;
  what: string;
  text: string;
  evidence: Record<string, unknown>;
}

/** Billed time of each attempt at on-demand list prices of the instance types that it named. */
export interface ReportCost {
  prices: { instanceType: string; usdPerHour: number | null; note: string }[];
  attempts: { number: number; instances: ReportInstances[]; seconds: number | null; usd: number | null }[];
  /** null when one part of it is not known. */
  totalUsd: number | null;
}

/** The `efa` line of one attempt (contract: efa.json). */
export interface ReportEfa {
  attempt: number;
  verdict: string;
  devices?: number;
  interfaces?: number | null;
  expectedInterfaces?: number | null;
  provider?: string | null;
  plugin?: string | null;
  libfabric?: string | null;
  nccl?: string | null;
  busBandwidthGBps?: number | null;
  expectedGBps?: number | null;
  /** How many hosts gave which verdict; none in the lines of older drivers. */
  hosts?: Record<string, number>;
  /** Names of hosts with a slower verdict than the fastest, 20 at most. */
  slowerHosts?: string[];
  evidence: string[];
}
