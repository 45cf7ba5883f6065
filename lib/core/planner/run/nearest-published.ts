import { accelerators } from '../../catalog/instances/accelerators';
import { activeParameterCount } from '../../catalog/model/parameters';
import { PUBLISHED_SPEEDS, type PublishedMethod } from '../../catalog/published-runs';
import { type LayoutInput, worldSizeOf } from '../layout';

/** A published run beside a plan. */
export interface NearestPublished {
  /** Model and software. */
  name: string;
  /** Short name of the GPU. */
  gpu: string;
  gpus: number;
  sequenceLength: number;
  precision: string;
  method: string;
  tokensPerSecondPerGpu: number;
  /** The same at the planned model's number of active parameters. */
  forThisModel: number;
  source: string;
}

/** Distance above which a published run says nothing about a plan: models of five times the size, for example. */
const FARTHEST = 1.6;
const OTHER_GPU = 1;
/** Tensor parallelism costs more than a few nodes do. */
const OTHER_METHOD = 0.8;

function methodOf(l: LayoutInput): PublishedMethod {
  if (l.model.experts > 1) return 'experts';
  return l.tensor * l.pipeline > 1 ? 'tensor or pipeline parallel' : 'FSDP';
}

const ratio = (a: number, b: number) => Math.abs(Math.log(a / b));

/** The published run that is nearest to a layout in model size, GPU, number of GPUs, sequence length and method; undefined if none is near. */
export function nearestPublished(l: LayoutInput): NearestPublished | undefined {
  if (l.adapters !== undefined || l.preferences) return undefined;
  const activeB = activeParameterCount(l.model) / 1e9;
  const precision = l.precision.startsWith('bf16') ? 'bf16' : l.precision === 'fp32' ? undefined : 'fp8';
  const method = methodOf(l);
  const near = PUBLISHED_SPEEDS.flatMap((row) => {
    const [name, theirB, gpu, gpus, sequenceLength, theirPrecision, theirMethod, tokensPerSecondPerGpu, source] = row;
    const chip = accelerators(1, gpu);
    const isSameKind = (theirMethod === 'experts') === (method === 'experts') && theirPrecision === precision;
    if (!isSameKind || chip.architecture !== l.accelerator.architecture) return [];
    const distance =
      ratio(theirB, activeB) +
      0.5 * ratio(sequenceLength, l.sequence) +
      0.1 * ratio(gpus, worldSizeOf(l)) +
      (chip.model === l.accelerator.model ? 0 : OTHER_GPU) +
      (theirMethod === method ? 0 : OTHER_METHOD);
    const forThisModel = tokensPerSecondPerGpu * (theirB / activeB);
    const run = { name, gpu, gpus, sequenceLength, precision: theirPrecision, method: theirMethod, source };
    return [{ distance, run: { ...run, tokensPerSecondPerGpu, forThisModel } }];
  }).sort((a, b) => a.distance - b.distance || b.run.tokensPerSecondPerGpu - a.run.tokensPerSecondPerGpu);
  return near[0] && near[0].distance <= FARTHEST ? near[0].run : undefined;
}
