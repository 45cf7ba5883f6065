import type { RunPlan } from '../../planner/run/plan-run';
import type { Candidate } from '../../search/search-run';

/** What `slipway plan --html` draws. A part that is `undefined` was not computed, and the page says so. */
export interface PlanReport {
  /** Name of the run. */
  name: string;
  library: string;
  /** Instances as the run file names them. */
  instances: { instanceType: string; count: number }[];
  /** Hosts beside them that wait. @default 0 */
  spareInstances?: number;
  /** Region that prices were looked up for. */
  region: string;
  plan: RunPlan;
  /** The same layout on other numbers of nodes, global batch in proportion. */
  scaling?: ScalingPoint[];
  search?: PlanSearch;
  /** Published measurements of comparable runs beside what the planner says of them. */
  published?: PublishedRun[];
}

/** The plan of the same run on another number of instances. */
export interface ScalingPoint {
  nodes: number;
  tokensPerSecondPerGpu: number;
  /** 80 % interval. */
  interval80: [low: number, high: number];
  fits: RunPlan['fits'];
}

/** Layouts that the search found, best first. */
export interface PlanSearch {
  /** Layouts that were looked at, and how long that took. */
  considered: number;
  seconds: number;
  candidates: Candidate[];
  /** Neither faster nor cheaper exists. */
  pareto: Candidate[];
}

/** A published measurement that is near the planned run, with its source. */
export interface PublishedRun {
  name: string;
  /** Where it was published: a URL or a title. */
  source: string;
  nodes: number;
  measuredTokensPerSecondPerGpu: number;
  predictedTokensPerSecondPerGpu: number;
  /** The same model, hardware and layout as this run, so that it may stand in the scaling chart. */
  isSameSetup: boolean;
}
