import { orList } from '../../../core/config/issue';
import type { StatusAnswer } from '../../../core/contracts/control';
import { median } from '../../../report/run/run-report';
import { UsageError } from '../../exit';

/** Metrics that a rule may use, and which end is the better one. */
const METRICS = { loss: 'low', goodput: 'high', spendUsd: 'low' } as const;
type Metric = keyof typeof METRICS;

/** `loss > best * 1.1 after 500 steps`. */
export interface StopRule {
  text: string;
  metric: Metric;
  isAbove: boolean;
  /** The bound is a number, or the best run's value at the same step, multiplied by or plus a number. */
  bound: { best: false; value: number } | { best: true; operator: '*' | '+' | '-'; value: number };
  /** Number of steps that a run must have made before it is judged. */
  afterSteps: number;
}

export interface Sample {
  step: number;
  value: number;
}

const NUMBER = String.raw`\d+(?:\.\d+)?(?:[eE][+-]?\d+)?`;
const RULE = new RegExp(
  String.raw`^\s*(\w+)\s*([<>])\s*(?:(best)(?:\s*([*+-])\s*(${NUMBER}))?|(${NUMBER}))(?:\s+after\s+(\d+)\s+steps?)?\s*$`,
);
/** The loss varies from step to step, so a run is judged by the median of this many newest samples. */
const MEDIAN_OF = 3;

/** @throws UsageError for a text that is not a rule */
export function parseStopRule(text: string): StopRule {
  const [, metric = '', sign, best, operator = '*', by = '1', value, steps = '0'] = RULE.exec(text) ?? [];
  if (!Object.hasOwn(METRICS, metric) || (best === undefined && value === undefined))
    throw new UsageError(
      `--stop-when: must compare ${orList(Object.keys(METRICS))} with a number or with best, got ${text}; write --stop-when "loss > best * 1.1 after 500 steps"`,
    );
  const bound = best
    ? { best: true as const, operator: operator as '*' | '+' | '-', value: Number(by) }
    : { best: false as const, value: Number(value) };
  return { text, metric: metric as Metric, isAbove: sign === '>', bound, afterSteps: Number(steps) };
}

/** The sample of a status; undefined while the metric is not available. */
export function sampleOf({ metric }: StopRule, status: StatusAnswer): Sample | undefined {
  const value = status[metric];
  return status.step === null || value === null ? undefined : { step: status.step, value };
}

/**
 * Whether the rule stops a run. It is compared at its newest step with the others that have reached it, so that neither those that started
 * first nor those that started later have a disadvantage; the best run is never stopped because of its own value.
 * @param others samples of the other runs of the sweep, including ended ones
 */
export function isLoser(rule: StopRule, own: readonly Sample[], others: readonly (readonly Sample[])[]): boolean {
  const step = own.at(-1)?.step;
  const value = valueAt(own, step);
  if (step === undefined || value === undefined || step < rule.afterSteps) return false;
  const bound = boundAt(rule, value, step, others);
  return bound !== undefined && (rule.isAbove ? value > bound : value < bound);
}

function boundAt({ metric, bound }: StopRule, own: number, step: number, others: readonly (readonly Sample[])[]) {
  if (!bound.best) return bound.value;
  const reached = others.filter((samples) => samples.some((sample) => sample.step >= step));
  const rivals = reached.flatMap((samples) => valueAt(samples, step) ?? []);
  if (rivals.length === 0) return undefined;
  const best = METRICS[metric] === 'low' ? Math.min(...rivals) : Math.max(...rivals);
  const leads = METRICS[metric] === 'low' ? own <= best : own >= best;
  if (leads) return undefined;
  if (bound.operator === '*') return best * bound.value;
  return bound.operator === '+' ? best + bound.value : best - bound.value;
}

/** Median of the newest samples up to a step; undefined for a run without a sample there. */
function valueAt(samples: readonly Sample[], step = Number.POSITIVE_INFINITY): number | undefined {
  const seen = samples.filter((sample) => sample.step <= step).slice(-MEDIAN_OF);
  return seen.length === 0 ? undefined : median(seen.map(({ value }) => value));
}
