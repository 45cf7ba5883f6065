import type { RunPlan } from '../../core/planner/run/plan-run';
import type { Candidate } from '../../core/search/search-run';

/** The data of `slipway plan --html`. An undefined part was not computed, and the page says so. */
export interface PlanReport {
  name: string;
  library: string;
  /** Instances as in the run file. */
  instances: { instanceType: string; count: number }[];
  /** Number of additional spare hosts. @default 0 */
  spareInstances?: number;
  /** Region of the prices. */
  region: string;
  plan: RunPlan;
  /** The same layout on other numbers of nodes, with a proportional global batch size. */
  scaling?: ScalingPoint[];
  search?: PlanSearch;
  /** Published measurements of comparable runs and the planner's predictions for them. */
  published?: PublishedRun[];
}

/** The plan of the same run on another number of nodes. */
export interface ScalingPoint {
  nodes: number;
  tokensPerSecondPerGpu: number;
  /** 80 % interval. */
  interval80: [low: number, high: number];
  fits: RunPlan['fits'];
}

/** Layouts found by the search, best first. */
export interface PlanSearch {
  /** Number of layouts considered, and the duration of the search. */
  considered: number;
  seconds: number;
  candidates: Candidate[];
  /** Layouts for which no other layout is both faster and cheaper. */
  pareto: Candidate[];
}

/** A published measurement similar to the planned run, with its source. */
export interface PublishedRun {
  name: string;
  /** Where it was published: a URL or a title. */
  source: string;
  nodes: number;
  measuredTokensPerSecondPerGpu: number;
  predictedTokensPerSecondPerGpu: number;
  /** Whether model, hardware and layout match this run, so that it can be shown in the scaling chart. */
  isSameSetup: boolean;
}
