import { findInstanceType, lacksBf16 } from '../catalog/instances/instances';
import { nearest } from '../catalog/nearest';
import { orList } from '../config/issue';
import { type Finding, when } from '../config/rule';
import type { RunSpec } from '../config/run-spec';
import { trainingInstanceTypes } from './strategy';
import { hostsOfDomain } from './ultra-servers';

/** Type and range of one library parameter. */
export type ParameterKind =
  | { type: 'int'; min?: number; max?: number }
  | { type: 'number'; min?: number; max?: number }
  | { type: 'bool' }
  | { type: 'string' }
  | { type: 'enum'; values: readonly string[] };

/** How messages refer to a parameter of a library, and to its allowed values. */
export interface ParameterWords {
  library: string;
  /** The remedy for an unknown key. */
  unknownFix?: (key: string) => string;
}

/** Path of a library parameter in the run file. */
export const parameterPath = (key: string) => `distribution.parameters.${key}`;

/** Findings for every parameter that is unknown, of the wrong type or out of range. */
export function parameterFindings(
  given: Readonly<Record<string, unknown>>,
  known: Readonly<Record<string, ParameterKind>>,
  words: ParameterWords,
): Finding[] {
  return Object.entries(given).flatMap(([key, value]) => {
    const path = parameterPath(key);
    const kind = known[key];
    if (!kind) {
      const fix = words.unknownFix?.(key) ?? `use ${orList(nearest(key, Object.keys(known)))}, or remove it`;
      return { path, must: `must be a parameter of ${words.library}`, got: key, fix };
    }
    const refusal = refusalOf(kind, value);
    return refusal ? [{ path, ...refusal }] : [];
  });
}

function refusalOf(kind: ParameterKind, value: unknown): Pick<Finding, 'must' | 'fix'> | undefined {
  switch (kind.type) {
    case 'bool':
      return typeof value === 'boolean' ? undefined : { must: 'must be true or false', fix: 'use true or false' };
    case 'string':
      return typeof value === 'string' ? undefined : { must: 'must be text', fix: 'write it in quotes' };
    case 'enum':
      return kind.values.includes(String(value))
        ? undefined
        : { must: `must be ${orList(kind.values)}`, fix: 'use one of them' };
    default:
      return numberRefusal(kind, value);
  }
}

function numberRefusal(
  { type, min, max }: Extract<ParameterKind, { type: 'int' | 'number' }>,
  value: unknown,
): Pick<Finding, 'must' | 'fix'> | undefined {
  const fits =
    (type === 'int' ? Number.isInteger(value) : Number.isFinite(value)) &&
    Number(value) >= (min ?? Number.NEGATIVE_INFINITY) &&
    Number(value) <= (max ?? Number.POSITIVE_INFINITY);
  if (fits) return undefined;
  const noun = type === 'int' ? 'a whole number' : 'a number';
  const bounds = [min !== undefined && `of at least ${min}`, max !== undefined && `of at most ${max}`].filter(Boolean);
  return {
    must: `must be ${noun} ${bounds.join(' and ')}`.trim(),
    fix: `use ${noun}${min !== undefined ? ` from ${min} on` : ''}`,
  };
}

const PRODUCTS_ONLY: readonly string[] = ['fp8', 'mxfp8', 'nvfp4'] satisfies RunSpec['training']['precision'][];

/**
 * Whether a library's computing precision `theirs` contradicts `training.precision`, if both are known. Products in 8 and 4 bit are used in
 * a bf16 model (https://github.com/NVIDIA/Megatron-LM/blob/main/examples/llama/train_llama3_8b_h100_fp8.sh, 2026-11-23).
 */
export function contradictsPrecision(written: string | undefined, theirs: unknown): boolean {
  if (written === undefined || theirs === undefined) return false;
  return written !== theirs && !(theirs === 'bf16' && PRODUCTS_ONLY.includes(written));
}

/** Finding when the file has another value for an option of section `training` than the library, which has it at `path`. */
export function disagrees(run: RunSpec, option: keyof RunSpec['training'], path: string, theirs: unknown): Finding[] {
  const { [option]: ours, precision } = run.written.training ?? {};
  const isOther = ours !== undefined && theirs !== undefined && ours !== theirs;
  return when(option === 'precision' ? contradictsPrecision(precision, theirs) : isOther, path, {
    must: `must agree with training.${option} ${ours}`,
    fix: 'write one of the two',
  });
}

/** Findings for types on which the parameter `key` must not enable bf16, because their GPUs do not support it. */
export function bf16Findings(run: RunSpec, key: string): Finding[] {
  return trainingInstanceTypes(run).flatMap((type) => {
    const accelerator = findInstanceType(type)?.accelerator;
    return when(accelerator !== undefined && lacksBf16(accelerator), parameterPath(key), {
      must: `must be off on ${type}, whose GPUs have no bf16`,
      fix: 'use fp16, or ml.g5, ml.p4d and newer',
    });
  });
}

/** Finding when tensor parallelism extends beyond an instance or UltraServer; `path` is the option that sets the degree. */
export function tensorAcrossHosts(run: RunSpec, tensor: number, path: string): Finding[] {
  const hosts = hostsOfDomain(run);
  const gpus = run.distribution.processesPerHost * hosts;
  return when(tensor > gpus, path, {
    must: `must be at most the ${gpus} GPUs of one ${hosts > 1 ? 'UltraServer' : 'instance'}`,
    fix: `use ${orList(divisorsUpTo(gpus, gpus))}`,
  });
}

/** Finding when the sequence cannot be split into this number of pieces; `of` says what they are. */
export const unsplitSequence = ({ training: { sequenceLength = 0 } }: RunSpec, pieces: number, of: string): Finding[] =>
  when(sequenceLength % pieces !== 0, 'training.sequenceLength', {
    must: `must be a multiple of ${pieces} (${of})`,
    fix: `use ${Math.ceil(sequenceLength / pieces) * pieces}`,
  });

/** Finding when context parallelism cannot split the sequence into two load-balanced pieces per rank. */
export const unevenSequence = (run: RunSpec, context: number): Finding[] =>
  unsplitSequence(run, context > 1 ? 2 * context : 1, '2 x context_parallel_degree');

/** The multiple of `unit` that is nearest to `value`, but not 0. */
export const nearestMultiple = (value: number, unit: number): number => Math.max(1, Math.round(value / unit)) * unit;

/** The divisors of `n` up to `limit`, ascending. */
export function divisorsUpTo(n: number, limit: number): number[] {
  const divisors: number[] = [];
  for (let d = 1; d <= Math.min(n, limit); d++) if (n % d === 0) divisors.push(d);
  return divisors;
}
