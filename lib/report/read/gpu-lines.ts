import type { ReportGpus, ReportGpuUse } from '../run/run-report';

/** A `gpus` line: how busy the GPUs of each host were at one moment, by the name of the host. */
export interface GpuLine {
  attempt: number;
  /** ISO 8601. */
  at: string;
  hosts: Readonly<Record<string, ReportGpuUse>>;
}

/** Points of the chart: a driver tells one a minute, which are half a million in a year. */
const MOST_POINTS = 1000;

const finite = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);

/** The hosts of such a line that say something usable: the text is a container's. */
export function gpuHosts(value: unknown): Record<string, ReportGpuUse> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(Object.entries(value).flatMap(([host, use]) => usable(host, use)));
}

function usable(host: string, value: unknown): [string, ReportGpuUse][] {
  const { utilizationPercent, memoryGiB, totalGiB } = (value ?? {}) as Partial<Record<keyof ReportGpuUse, unknown>>;
  if (!finite(memoryGiB) || !finite(totalGiB)) return [];
  return [[host, { utilizationPercent: finite(utilizationPercent) ? utilizationPercent : null, memoryGiB, totalGiB }]];
}

/** Newest use by host, of the newest attempt that told any; a host that fell silent keeps what it said last. */
export function newestGpuUse(lines: readonly GpuLine[]): Record<string, ReportGpuUse> {
  const newest = lines.at(-1)?.attempt;
  // A long run has more lines than a call may have arguments.
  return Object.fromEntries(lines.flatMap(({ attempt, hosts }) => (attempt === newest ? Object.entries(hosts) : [])));
}

/** Order of hosts whose GPUs wait most first; those that do not tell it come last. */
export const leastBusyFirst = (a: Pick<ReportGpuUse, 'utilizationPercent'>, b: typeof a): number =>
  (a.utilizationPercent ?? 101) - (b.utilizationPercent ?? 101);

/** The lines of a run as its report holds them: by host over all attempts, and by time the mean over the hosts and the lines of a point. */
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

/** Consecutive lines of one attempt, as many together as leave at most MOST_POINTS parts and one more for each attempt. */
function inParts(lines: readonly GpuLine[]): GpuLine[][] {
  const together = Math.ceil(lines.length / MOST_POINTS);
  const parts: GpuLine[][] = [];
  for (const line of lines) {
    const last = parts.at(-1);
    if (last && last.length < together && last[0]?.attempt === line.attempt) last.push(line);
    else parts.push([line]);
  }
  return parts;
}

function meanUse(uses: readonly ReportGpuUse[]): number | null {
  const told = uses.flatMap(({ utilizationPercent }) => utilizationPercent ?? []);
  return told.length === 0 ? null : told.reduce((sum, percent) => sum + percent, 0) / told.length;
}
