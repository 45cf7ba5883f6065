import type { ScenarioFile } from '../scenario/schema';

/** Maximum number of plays, so that shrinking a large scenario takes minutes. */
const MAX_PLAYS = 400;

/**
 * Finds the shortest scenario that still fails: removes parts, then shortens the duration and rounds numbers, as long as the same
 * invariants are violated.
 * @param fails plays a scenario and returns whether it fails as the first one did
 */
export async function shrink(
  file: ScenarioFile,
  fails: (candidate: ScenarioFile) => Promise<boolean>,
): Promise<ScenarioFile> {
  let best = file;
  let plays = 0;
  const accept = async (candidate: ScenarioFile): Promise<boolean> => {
    if (plays++ >= MAX_PLAYS || !(await fails(candidate))) return false;
    best = candidate;
    return true;
  };
  for (let before = ''; before !== JSON.stringify(best) && plays < MAX_PLAYS; ) {
    before = JSON.stringify(best);
    for (const part of ['runs', 'faults', 'calls', 'outside', 'capacity'] as const)
      await shrinkList(best, part, accept, () => best);
    for (const part of ['rates', 'limits'] as const) if (best[part]) await accept(without(best, part));
    await shrinkEnd(() => best, accept);
    await shrinkFields(() => best, accept);
  }
  return best;
}

type Part = 'runs' | 'faults' | 'calls' | 'outside' | 'capacity';

/** Removes halves, then quarters, then single entries. */
async function shrinkList(
  first: ScenarioFile,
  part: Part,
  accept: (candidate: ScenarioFile) => Promise<boolean>,
  best: () => ScenarioFile,
): Promise<void> {
  for (let size = Math.ceil((first[part]?.length ?? 0) / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < (best()[part]?.length ?? 0); ) {
      const list = best()[part] ?? [];
      const kept = [...list.slice(0, at), ...list.slice(at + size)];
      if (!(await accept(tidy({ ...best(), [part]: kept } as ScenarioFile)))) at += size;
    }
  }
}

/** Removes references to runs that no longer exist. */
function tidy(file: ScenarioFile): ScenarioFile {
  const ids = new Set((file.runs ?? []).map(({ id }) => id));
  const isHere = (target: string | undefined) => target === undefined || ids.has(target.split('#')[0] ?? '');
  const faults = file.faults?.filter(
    (f) => isHere(f.job) && isHere(f.deleteJob) && isHere(f.taken) && isHere(f.stored),
  );
  const calls = file.calls?.filter(({ run }) => run === undefined || ids.has(run));
  const next = { ...file, faults, calls };
  return Object.fromEntries(
    Object.entries(next).filter(([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0)),
  ) as ScenarioFile;
}

const without = (file: ScenarioFile, key: 'rates' | 'limits'): ScenarioFile => {
  const { [key]: _left, ...rest } = file;
  return rest as ScenarioFile;
};

async function shrinkEnd(
  best: () => ScenarioFile,
  accept: (candidate: ScenarioFile) => Promise<boolean>,
): Promise<void> {
  for (const share of [0.5, 0.75, 0.9]) {
    const { until = 0 } = best();
    const hours = Math.ceil((until * share) / 3600);
    if (hours * 3600 < until) await accept({ ...best(), until: hours * 3600 });
  }
}

/** Fields of runs that can be removed to get their defaults. */
const OPTIONAL = [
  'commitEveryMinutes',
  'secondsPerStep',
  'startMinutes',
  'checkpointObjects',
  'startAt',
  'note',
  'team',
] as const;

async function shrinkFields(
  best: () => ScenarioFile,
  accept: (candidate: ScenarioFile) => Promise<boolean>,
): Promise<void> {
  for (let i = 0; i < (best().runs?.length ?? 0); i++) {
    for (const field of OPTIONAL) {
      const run = best().runs?.[i];
      if (!run || run[field] === undefined) continue;
      const { [field]: _left, ...rest } = run;
      await accept({ ...best(), runs: best().runs?.map((other, at) => (at === i ? (rest as typeof other) : other)) });
    }
  }
}
