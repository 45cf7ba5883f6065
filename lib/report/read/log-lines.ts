import { isGroup, parseJson } from '../../core/config/formats/json';
import type { ReportEvaluation, ReportGpus, ReportGpuUse, ReportSample, ReportStep } from '../run/run-report';

/** A `gpus` line: GPU utilisation by host at one time. */
export interface GpuLine {
  attempt: number;
  /** ISO 8601. */
  at: string;
  hosts: Readonly<Record<string, ReportGpuUse>>;
}

/** Maximum number of points in the chart: a driver reports one per minute, half a million per year. */
const MAX_POINTS = 1000;

/** Latest usage by host in the newest attempt that reported any; hosts without recent values keep their last one. */
export function newestGpuUse(lines: readonly GpuLine[]): Record<string, ReportGpuUse> {
  const newest = lines.at(-1)?.attempt;
  // A long run can have more lines than the maximum number of arguments.
  return Object.fromEntries(lines.flatMap(({ attempt, hosts }) => (attempt === newest ? Object.entries(hosts) : [])));
}

/** Sorts hosts by utilisation, lowest first; hosts without a value come last. */
export const leastBusyFirst = (a: Pick<ReportGpuUse, 'utilizationPercent'>, b: typeof a): number =>
  (a.utilizationPercent ?? 101) - (b.utilizationPercent ?? 101);

/** Summarises the lines for the report: by host over all attempts, and over time as the mean over hosts and lines per point. */
export function gpuSummary(lines: readonly GpuLine[]): ReportGpus | undefined {
  if (lines.length === 0) return undefined;
  const hosts = new Map<string, ReportGpuUse[]>();
  for (const line of lines)
    for (const [host, use] of Object.entries(line.hosts)) {
      const uses = hosts.get(host);
      if (uses) uses.push(use);
      else hosts.set(host, [use]);
    }
  return {
    hosts: [...hosts].map(([host, uses]) => ({
      host,
      looks: uses.length,
      utilizationPercent: meanUse(uses),
      memoryGiB: uses.reduce((most, { memoryGiB }) => Math.max(most, memoryGiB), 0),
      totalGiB: uses.reduce((most, { totalGiB }) => Math.max(most, totalGiB), 0),
    })),
    overTime: inParts(lines).map((part) => ({
      attempt: part[0]?.attempt ?? 0,
      at: part[0]?.at ?? '',
      utilizationPercent: meanUse(part.flatMap(({ hosts: all }) => Object.values(all))),
    })),
  };
}

/** Consecutive lines of one attempt, grouped so that at most MAX_POINTS groups remain, plus one per attempt. */
function inParts(lines: readonly GpuLine[]): GpuLine[][] {
  const together = Math.ceil(lines.length / MAX_POINTS);
  const parts: GpuLine[][] = [];
  for (const line of lines) {
    const last = parts.at(-1);
    if (last && last.length < together && last[0]?.attempt === line.attempt) last.push(line);
    else parts.push([line]);
  }
  return parts;
}

function meanUse(uses: readonly ReportGpuUse[]): number | null {
  const known = uses.flatMap(({ utilizationPercent }) => utilizationPercent ?? []);
  return known.length === 0 ? null : known.reduce((sum, percent) => sum + percent, 0) / known.length;
}

export interface LogLine {
  /** ISO 8601. */
  at: string;
  attempt: number;
  message: string;
}

/** A `checkpoint` line: printed by the trainer when the checkpoint is committed. */
export type SaveLine = ReturnType<typeof saveOf>[number];
/** The `efa` line of one attempt (contract: efa.json). */
export type ReportEfa = Pick<EfaLine, 'attempt' | 'verdict' | 'evidence'> & Partial<EfaLine>;
type EfaLine = ReturnType<typeof efaOf>;

export interface Progress {
  steps: ReportStep[];
  saves: SaveLine[];
  efa: ReportEfa[];
  samples: ReportSample[];
  evaluations: ReportEvaluation[];
  gpus: GpuLine[];
}

const PREFIX = 'slipway {';

type Fields = Record<string, unknown>;

/** Parses a progress line (`slipway {json}`); undefined for other lines. Never throws: the text is not trusted. */
export function parseProgressLine(message: string): Fields | undefined {
  const parsed = message.startsWith(PREFIX) ? parseJson(message.slice(PREFIX.length - 1)) : undefined;
  return isGroup(parsed) && typeof parsed.event === 'string' ? parsed : undefined;
}

/** The data from the progress lines of all attempts, in chronological order. */
export function progressOf(lines: readonly LogLine[]): Progress {
  const steps: ReportStep[] = [];
  const saves: SaveLine[] = [];
  const samples: ReportSample[] = [];
  const evaluations: ReportEvaluation[] = [];
  const gpus: GpuLine[] = [];
  const efa = new Map<number, ReportEfa>();
  for (const line of [...lines].sort((a, b) => a.at.localeCompare(b.at))) {
    const fields = parseProgressLine(line.message.trimEnd());
    if (fields?.event === 'step') steps.push(...stepOf(line, fields));
    if (fields?.event === 'checkpoint') saves.push(...saveOf(line, fields));
    if (fields?.event === 'sample') samples.push(...sampleOf(line, fields));
    if (fields?.event === 'eval') evaluations.push(...evaluationOf(line, fields));
    if (fields?.event === 'gpus') gpus.push(...gpusOf(line, fields));
    // The last verdict of an attempt counts, because a restart in place produces another one.
    if (fields?.event === 'efa') efa.set(line.attempt, efaOf(line, fields));
  }
  return { steps, saves, efa: [...efa.values()].sort((a, b) => a.attempt - b.attempt), samples, evaluations, gpus };
}

const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** The hosts of a `gpus` line with valid values; the text comes from a container and is not trusted. */
function gpusOf({ attempt, at }: LogLine, f: Fields): GpuLine[] {
  const uses = Object.entries(isGroup(f.hosts) ? f.hosts : {}).flatMap(([host, use]) => {
    const given = isGroup(use) ? use : {};
    const [memoryGiB, totalGiB] = [numberOf(given.memoryGiB), numberOf(given.totalGiB)];
    if (memoryGiB === undefined || totalGiB === undefined) return [];
    return [[host, { utilizationPercent: numberOf(given.utilizationPercent) ?? null, memoryGiB, totalGiB }] as const];
  });
  return uses.length === 0 ? [] : [{ attempt, at, hosts: Object.fromEntries(uses) }];
}

function stepOf({ attempt, at }: LogLine, f: Fields): ReportStep[] {
  const step = numberOf(f.step);
  if (step === undefined) return [];
  const rest = {
    loss: numberOf(f.loss),
    tokens: numberOf(f.tokens),
    tokensPerSecondPerGpu: numberOf(f.tokensPerSecondPerGpu),
    mfu: numberOf(f.mfu),
    stepSeconds: numberOf(f.stepSeconds),
    memoryGiB: numberOf(f.memoryGiB),
    expertLoad: expertLoadOf(f.expertLoad),
  };
  const known = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  return [{ attempt, at, step, ...known }];
}

/** Aggregates the loads of all layers with experts. */
function expertLoadOf(value: unknown): ReportStep['expertLoad'] {
  const loads = Array.isArray(value) ? value.flatMap((load) => numberOf(load) ?? []) : [];
  if (loads.length === 0) return undefined;
  const most = Math.max(...loads);
  return { most, layer: loads.indexOf(most), mean: loads.reduce((sum, load) => sum + load, 0) / loads.length };
}

function saveOf({ attempt, at }: LogLine, f: Fields) {
  const step = numberOf(f.step);
  if (step === undefined) return [];
  const [blockedSeconds, totalSeconds] = [numberOf(f.secondsBlocked) ?? null, numberOf(f.secondsTotal) ?? null];
  return [{ attempt, at, step, uri: textOf(f.uri) ?? null, blockedSeconds, totalSeconds }];
}

function sampleOf({ attempt, at }: LogLine, f: Fields): ReportSample[] {
  const [step, number] = [numberOf(f.step), numberOf(f.number)];
  if (step === undefined || number === undefined) return [];
  const texts = { prompt: textOf(f.prompt), text: textOf(f.text), expected: textOf(f.expected) };
  const known = Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== undefined));
  const tokens = Array.isArray(f.tokens) ? f.tokens.filter((token) => Number.isInteger(token)) : [];
  return [{ attempt, at, step, number, tokens, ...known }];
}

function evaluationOf({ attempt, at }: LogLine, f: Fields): ReportEvaluation[] {
  const [step, loss] = [numberOf(f.step), numberOf(f.loss)];
  return step === undefined || loss === undefined ? [] : [{ attempt, at, step, loss }];
}

const efaOf = ({ attempt }: LogLine, f: Fields) => ({
  attempt,
  verdict: textOf(f.verdict) ?? 'unknown',
  devices: numberOf(f.devices),
  interfaces: numberOf(f.interfaces) ?? null,
  expectedInterfaces: numberOf(f.expectedInterfaces) ?? null,
  provider: textOf(f.provider) ?? null,
  plugin: textOf(f.plugin) ?? null,
  libfabric: textOf(f.libfabric) ?? null,
  nccl: textOf(f.nccl) ?? null,
  busBandwidthGBps: numberOf(f.busBandwidthGBps) ?? null,
  expectedGBps: numberOf(f.expectedGBps) ?? null,
  /** Number of hosts by verdict; absent in the lines of older drivers. */
  hosts: countsOf(f.hosts),
  /** Hosts with a slower verdict than the fastest host, at most 20. */
  slowerHosts: textsOf(f.slowerHosts),
  evidence: textsOf(f.evidence),
});

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((text) => typeof text === 'string') : [];

function countsOf(value: unknown): Record<string, number> | undefined {
  if (!isGroup(value)) return undefined;
  return Object.fromEntries(
    Object.entries(value).flatMap(([verdict, count]) => (typeof count === 'number' ? [[verdict, count]] : [])),
  );
}
