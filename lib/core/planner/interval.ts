import type { LayoutInput } from './layout';
import { lowPrecisionOf } from './time/low-precision';
import type { StepSeconds } from './time/step-time';

/**
 * Half width of the 80 % interval in ln(tokens per second), from the errors on whole sources that were held out of the fit
 * (`bench/fit-planner.ts --cv`): computation alone is predicted to within 8 %; communication is predicted less well, and so are libraries
 * whose versions differ most.
 */
const KERNELS = 0.08;
const COMMUNICATION = 0.25;
const LIBRARY: Readonly<Partial<Record<LayoutInput['stack'], number>>> = {
  'megatron-legacy': 0.03,
  nanotron: 0.05,
  'smp-v1': 0.05,
  deepspeed: 0.12,
};

/**
 * Uncertainty of layouts that no published run has measured (preference training, multi-token prediction modules, UltraServers, recurrences),
 * or six alone (adapters).
 */
const UNMEASURED = 0.1;

/** Matrices in 4 bits: published runs spend 2 to 7 times the traffic of unpacking on it, depending on library and GPU (docs/planner.md). */
const QUANTIZED = 0.15;

/**
 * Mixture-of-experts models: predictions for published runs are up to 43 % off, and versions of one library differ by up to 77 %
 * (docs/planner.md).
 */
const MIXTURE = 0.2;

/** Whether some layers use a recurrence, or select what they attend to: its arithmetic is counted, but no published run measures it. */
const isUnusual = ({ model }: LayoutInput) =>
  [model, ...(model.kinds ?? []).map(({ block }) => block)].some(
    ({ recurrence, attention, streams, expertHidden }) => recurrence ?? attention ?? streams ?? expertHidden,
  );

/** The 80 % interval around `tokensPerSecond`. */
export function interval80(tokensPerSecond: number, l: LayoutInput, step: StepSeconds): [low: number, high: number] {
  const communication =
    step.tensorParallel +
    step.dataParallel +
    step.pipelineParallel +
    step.bubble +
    step.contextParallel +
    step.expertParallel +
    step.offload;
  const unmeasured =
    l.preferences || l.adapters !== undefined || l.model.mtpLayers || isUnusual(l) || (l.domainNodes ?? 1) > 1
      ? UNMEASURED
      : 0;
  const half =
    KERNELS +
    (COMMUNICATION * communication) / step.total +
    (LIBRARY[l.stack] ?? 0) +
    unmeasured +
    (l.quantized ? QUANTIZED : 0) +
    (l.model.experts > 1 ? MIXTURE : 0) +
    (lowPrecisionOf(l)?.unsure ?? 0);
  return [tokensPerSecond * Math.exp(-half), tokensPerSecond * Math.exp(half)];
}
