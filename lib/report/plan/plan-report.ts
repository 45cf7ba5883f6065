import type { NearestPublished } from '../../core/planner/run/nearest-published';
import type { RunPlan } from '../../core/planner/run/plan-run';
import type { FoundAround } from '../../core/search/search-run';
import { color } from '../page/style';

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
  /** The nearest published run. @default - none is near */
  nearest?: NearestPublished;
}

/** Colours of the verdicts on memory. */
export const TONES = { fits: color('good'), tight: color('warn'), oom: color('bad') } as const;

/** The plan of the same run on another number of nodes. */
export interface ScalingPoint {
  nodes: number;
  tokensPerSecondPerGpu: number;
  /** 80 % interval. */
  interval80: [low: number, high: number];
  fits: RunPlan['fits'];
}

/** Layouts found by the search, best first. */
export interface PlanSearch extends FoundAround {
  /** Duration of the search. */
  seconds: number;
}
