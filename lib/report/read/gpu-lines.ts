import type { ReportGpus, ReportGpuUse } from '../run/run-report';

/** A `gpus` line: GPU utilisation by host at one time. */
export interface GpuLine {
  attempt: number;
  /** ISO 8601. */
  at: string;
  hosts: Readonly<Record<string, ReportGpuUse>>;
}

/** Maximum number of points in the chart: a driver reports one per minute, half a million per year. */
const MAX_POINTS = 1000;

const finite = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);

/** The hosts of a `gpus` line with valid values; the text comes from a container and is not trusted. */
export function gpuHosts(value: unknown): Record<string, ReportGpuUse> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(Object.entries(value).flatMap(([host, use]) => usable(host, use)));
}

function usable(host: string, value: unknown): [string, ReportGpuUse][] {
  const { utilizationPercent, memoryGiB, totalGiB } = (value ?? {}) as Partial<Record<keyof ReportGpuUse, unknown>>;
  if (!finite(memoryGiB) || !finite(totalGiB)) return [];
  return [[host, { utilizationPercent: finite(utilizationPercent) ? utilizationPercent : null, memoryGiB, totalGiB }]];
}

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
