import type { Printed, TimelineAnswer } from '../../core/contracts/answers';
import type { Ledger } from '../../core/lifecycle/ledger';
import type { LineageRun } from '../lineage/lineage';
import type { ReportEfa } from '../read/log-lines';

/**
 * All data about one run: the output of `slipway report --json` and the source of its page. An undefined part could not be read; `missing`
 * has the reason. An empty list was read and is empty. Times are ISO 8601 in UTC.
 */
export interface RunReport {
  runId: string;
  name: string;
  team: string;
  environment: string;
  region: string;
  state: string;
  /** Reason for the state; '' if there is none. */
  reason: string;
  readAt: string;
  /** Newest observed step and newest committed step. */
  step: number | null;
  committedStep: number | null;
  /** Share of kept steps in the time since the first job was created, 0-1. */
  goodput: number | null;
  /** Cost recorded by the launcher, USD at the environment's prices. */
  spendUsd: number | null;
  attempts: ReportAttempt[];
  steps?: ReportStep[];
  /** Generated samples in chronological order; empty if the run did not request them. */
  samples?: ReportSample[];
  /** Losses on the evaluation channel in chronological order; empty if the run does not evaluate. */
  evaluations?: ReportEvaluation[];
  /** GPU utilisation; absent when no host has reported it. */
  gpus?: ReportGpus;
  /** Hosts as their logs describe them, those that cost the most time first; at most 64. */
  hosts?: ReportHost[];
  checkpoints?: ReportCheckpoint[];
  ledger?: Ledger;
  timeline?: ReportEvent[];
  cost?: ReportCost;
  efa?: ReportEfa[];
  /** What a person needs next; only of a run that failed. */
  failure?: ReportFailure;
  /** Note, tags and the run file with its overrides and defaults. Absent when the launcher does not provide the configuration. */
  launch?: ReportLaunch;
  /** Origin of the run, with locations as in its run file. Absent when the launcher does not provide the configuration. */
  lineage?: LineageRun;
  /** The planner's prediction, and the measured values. */
  speed?: ReportSpeed;
  /** Why a part could not be read, by the part's name. */
  missing: Partial<Record<ReportPart, string>>;
}

/** A part of the report that could not be read. */
export type ReportPart = 'steps' | 'checkpoints' | 'timeline' | 'cost' | 'efa';

export interface ReportFailure {
  attempt: number;
  /** Host of the first error; '' when no line looks like one, or the log could not be read. */
  host: string;
  lines: string[];
  /** The page that says what to do. */
  runbook: string;
  commands: string[];
}

interface ReportLaunch {
  note: string;
  tags: Record<string, string>;
  spec: Record<string, unknown>;
}

/** Tokens per second per GPU. */
export interface ReportSpeed {
  planned: number;
  /** 80 % interval of `planned`. */
  interval80: readonly [low: number, high: number];
  /** Median over the steady steps of the last attempt; null if there are too few. */
  measured: number | null;
  /** GiB on one GPU; absent when the plan is short of memory, because a full allocator releases its cache. */
  memory?: ReportMemory;
}

/** Memory of the GPUs, in GiB. */
export interface ReportMemory {
  /** Planned weights, gradients and optimizer state, and everything else. */
  state: number;
  rest: number;
  /** Peak memory reserved by the allocator on the first rank; null if not reported. */
  measured: number | null;
}

/** GPU usage of one host, from nvidia-smi. */
export type ReportGpuUse = Printed<'gpuLine'>['gpus'][string];

/**
 * GPUs of a run: by host, mean utilisation and peak memory over all samples; over time, the mean over hosts for each sample, or for groups
 * of consecutive samples, at the time of the first, if there are more than 1,000.
 */
export interface ReportGpus {
  hosts: (ReportGpuUse & { host: string; looks: number })[];
  overTime: { attempt: number; at: string; utilizationPercent: number | null }[];
}

export interface ReportHost {
  attempt: number;
  /** `algo-2`. */
  host: string;
  /** UUIDs; empty when the host has none or did not report them. */
  gpus: string[];
  /** Health check before training; null = none was made or its line is missing. `reported`: passed, with findings. */
  check: 'passed' | 'reported' | 'refused' | null;
  /** Restarts in place that the host caused, and their seconds until the first step. */
  restarts: number;
  restartSeconds: number;
  /** Findings, failures, slow steps and replacements. */
  events: { at: string; text: string }[];
}

/** Instances of one type and kind. */
export interface ReportInstances {
  instanceType: string;
  count: number;
}

/** One attempt in the report. Times are ISO 8601, durations in seconds, money in USD. */
export interface ReportAttempt {
  /** Counted from 1. */
  number: number;
  trainingJobName: string;
  /** Statuses of SageMaker; '' before a job exists. */
  status: string;
  secondaryStatus: string;
  firstStep: number | null;
  lastStep: number | null;
  reason: string;
  /** Times at which the attempt was decided, training started, and it ended. */
  intendedAt: string | null;
  startedAt: string | null;
  endedAt: string | null;
  /** Instances of the job; undefined = the job could not be described. */
  instances?: ReportInstances[];
  isSpot?: boolean;
  /** BillableTimeInSeconds of the job; null while it runs. */
  billableSeconds?: number | null;
}

/** One `step` line of rank 0; values that the script does not print are absent. */
export interface ReportStep {
  attempt: number;
  at: string;
  step: number;
  loss?: number;
  tokens?: number;
  tokensPerSecondPerGpu?: number;
  mfu?: number;
  stepSeconds?: number;
  /** Peak memory reserved by the allocator so far. */
  memoryGiB?: number;
  /**
   * For a mixture of experts: tokens of a layer's most loaded expert divided by the mean over its experts; the largest value, the index of
   * its layer among the layers with experts (from 0), and the mean over these layers.
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

/** One `sample` line: the model's continuation of the beginning of a document, with greedy decoding. */
export interface ReportSample {
  attempt: number;
  at: string;
  step: number;
  /** Index of the prompt, from 0. */
  number: number;
  /** The continuation; empty if the line is damaged. */
  tokens: number[];
  /** The prompt, the continuation, and the text in the data; absent when the run has no tokenizer. */
  prompt?: string;
  text?: string;
  expected?: string;
}

/** One committed checkpoint, from the trainer's lines, the launcher's observations and the bucket. */
export interface ReportCheckpoint {
  step: number;
  attempt: number | null;
  savedAt: string | null;
  uri: string | null;
  /** Whether the bucket contains it now, with every object that it lists; null = the bucket was not listed. */
  inBucket: 'complete' | 'incomplete' | 'removed' | null;
  objects: number | null;
  sizeBytes: number | null;
  worldSize: number | null;
  /** Time that the save blocked training, and time until it was committed. */
  blockedSeconds: number | null;
  totalSeconds: number | null;
}

export type ReportEvent = TimelineAnswer;

/** Billed time of each attempt at on-demand list prices of its instance types. */
export interface ReportCost {
  prices: { instanceType: string; usdPerHour: number | null; note: string }[];
  attempts: { number: number; instances: ReportInstances[]; seconds: number | null; usd: number | null }[];
  /** null when a part of it is not known. */
  totalUsd: number | null;
}

/** At most `most` items, evenly distributed, including the first and the last. */
export function spread<Item>(all: readonly Item[], most: number): readonly Item[] {
  if (all.length <= most) return all;
  const places = Array.from({ length: most }, (_, i) => Math.round((i * (all.length - 1)) / (most - 1)));
  return all.filter((_, i) => places.includes(i));
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}
