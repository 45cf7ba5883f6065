import { Random } from '../core/random';
import type { CallEntry, RunEntry } from '../scenario/schema';

/** The part of a randomly drawn run file to which options are added. */
interface DrawnFile {
  code: { source: string };
  compute: { instanceType: string; instanceCount: number | { min: number; max: number }; capacity?: string };
}

const HOUR = 3600;

/** Runs with the less common options of a run file and of a scenario, and the calls that belong to them. */
export interface WithOptions {
  runs: RunEntry[];
  calls: CallEntry[];
}

/**
 * Adds alternatives, warm pools, spare hosts, start times and `after` to some of the runs each. Every run has a random stream of its own,
 * so that the rest of a history does not depend on these options.
 * @param types instance types that alternatives may use
 */
export function drawOptions(runs: readonly RunEntry[], seed: number, types: readonly string[]): WithOptions {
  const calls: CallEntry[] = [];
  const drawn = runs.map((run, i) => {
    const random = new Random(seed * 48_271 + i * 1_000_003 + 11);
    const before = runs[i - 1];
    const file = run.file as unknown as DrawnFile & Record<string, unknown>;
    const compute = { ...file.compute, ...drawCompute(random, file, types) };
    if (compute.keepAliveSeconds !== undefined && random.chance(0.3))
      calls.push({ at: (run.at ?? 0) + random.int(1, 30) * HOUR, do: 'release', run: run.id });
    const after = before && random.chance(0.1) ? { after: [before.id] } : {};
    const startAt = random.chance(0.1) ? { startAt: (run.at ?? 0) + random.int(1, 10) * HOUR } : {};
    return { ...run, file: { ...file, ...after, compute }, ...startAt } as RunEntry;
  });
  return { runs: drawn, calls };
}

function drawCompute(random: Random, { code, compute }: DrawnFile, types: readonly string[]) {
  const { instanceType, instanceCount, capacity } = compute;
  if (capacity === 'spot' || typeof instanceCount !== 'number') return {};
  const [other] = types.filter((type) => type !== instanceType);
  const hasAlternative = other !== undefined && random.chance(0.25);
  const count = Math.min(8, instanceCount * random.pick([1, 2]));
  const keepAliveSeconds = random.chance(0.25) ? random.pick([1800, 3600]) : undefined;
  const hasSpare = code.source === 'builtin' && instanceCount > 1 && random.chance(0.2);
  return {
    ...(hasAlternative && { alternatives: [{ instanceType: other, instanceCount: count }] }),
    ...(keepAliveSeconds !== undefined && !hasAlternative && { keepAliveSeconds }),
    ...(hasSpare && !hasAlternative && { spareInstances: 1 }),
  };
}
