import { onRequest } from '../lib/control/control/control';
import type { StatusAnswer } from '../lib/core/contracts/control';
import { EPOCH_MS } from '../tools/simulation/core/epoch';
import type { Random } from '../tools/simulation/core/random';
import { Judge } from '../tools/simulation/invariants/judge';
import { loadScenario } from '../tools/simulation/scenario/load';
import { World } from '../tools/simulation/world/world';

/** Hours that a run trains without failures. */
const TRAINS_HOURS = 24;

/** Hours between two failures of a run: the mean is drawn log-uniformly between these. */
export interface Population {
  name: string;
  fewestHours: number;
  mostHours: number;
}

/**
 * Runs as they come, up to the 460 hours that eight hosts of RSC-1 have between two failures (https://arxiv.org/abs/2410.21680), those alone
 * that fail several times in their day, and those that hardly fail.
 */
export const POPULATIONS: readonly Population[] = [
  { name: 'failures every 4 to 460 hours', fewestHours: 4, mostHours: 460 },
  { name: 'failures every 4 to 24 hours', fewestHours: 4, mostHours: 24 },
  { name: 'failures every 200 to 2,000 hours', fewestHours: 200, mostHours: 2000 },
];

/** Runs of one environment at the same time, each on eight hosts that some of them fail under, at times drawn with the means of the population. */
const FLEET = 10;
const HOSTS = 8;

function scenarioOf(random: Random, population: Population, runs: number): string {
  const ids = Array.from({ length: runs }, (_, i) => `r${i + 1}`);
  const faults = ids.flatMap((id) => faultsOf(random, population, id));
  return `schema: 1
environment: { name: research, regions: { us-west-2: {} }, teams: { nlp: {} } }
limits: { ml.p4d.24xlarge for training job usage: ${HOSTS * runs}, Number of instances across all training jobs: ${HOSTS * runs} }
runs:
${ids.map(runOf).join('')}${faults.length > 0 ? `faults:\n${faults.join('\n')}\n` : ''}until: ${TRAINS_HOURS * 2}h
`;
}

function faultsOf(random: Random, { fewestHours, mostHours }: Population, id: string): string[] {
  const faults: string[] = [];
  const hoursBetween = fewestHours * (mostHours / fewestHours) ** random.next();
  for (let at = 0.5, attempt = 1; ; attempt++) {
    at += -Math.log(1 - random.next()) * hoursBetween;
    if (at > TRAINS_HOURS * 1.2) return faults;
    faults.push(
      `  - { at: ${Math.round(at * 60)}m, job: "${id}#${attempt}", ends: Failed, reason: "InternalServerError: a host was lost" }`,
    );
  }
}

const runOf = (id: string): string => `  - id: ${id}
    file:
      name: ${id}
      code: { source: builtin }
      model: { architecture: { layers: 2, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 128, vocabularySize: 256 } }
      training: { sequenceLength: 128, microBatchSize: 1, globalBatchSize: 256, steps: 20000 }
      data: [{ channel: train, s3: "s3://{dataBucket}/tokens/" }]
      compute: { instanceType: ml.p4d.24xlarge, instanceCount: ${HOSTS} }
    trainsHours: ${TRAINS_HOURS}
`;

/** One observation of a run, judged by its end. */
export interface Forecast {
  /** Share of the remaining time by which the foretold end misses the real one. */
  error: number;
  /** Of the interval, in the same share. */
  width: number;
  isInside: boolean;
  /** Percent of the steps that were made. */
  progress: number;
  /** How often the run had been interrupted. */
  interruptions: number;
}

/** What status says of each run of an environment every hour, judged by its end. */
async function playFleet(text: string, number: number): Promise<Forecast[][]> {
  const { value, issues } = loadScenario(text, () => '');
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  const world = new World(value, number, new Judge());
  const seen = world.runs.map((): { at: number; status: StatusAnswer }[] => []);
  const observe = () => {
    for (const [i, run] of world.runs.entries()) {
      if (run.runId === undefined || run.isOver) continue;
      const request = { action: 'status', runId: run.runId };
      world.functions.control.invoke(
        (deps) => onRequest(deps, request, world.names.aliasArn(run.team)),
        (ending) => {
          if (ending.kind === 'answer') seen[i]?.push({ at: world.clock.now, status: ending.value as StatusAnswer });
        },
      );
    }
  };
  for (let hour = 1; hour < TRAINS_HOURS * 2; hour += 1) world.clock.schedule(hour * 3_600_000, observe);
  await world.play();
  return world.runs.map(({ record }, i) =>
    // A run whose failures spent its budget has no end to compare with.
    record?.state === 'completed' && record.endedAt !== undefined ? judged(seen[i] ?? [], record.endedAt) : [],
  );
}

const judged = (seen: readonly { at: number; status: StatusAnswer }[], end: number): Forecast[] =>
  seen.flatMap(({ at, status: { etaAt, etaInterval80, progressPercent, interruptions = 0 } }) => {
    if (!etaAt || !etaInterval80 || (progressPercent ?? 0) < 10) return [];
    const left = end - (EPOCH_MS + at);
    const [low, high] = etaInterval80.map((time) => Date.parse(time)) as [number, number];
    const width = (high - low) / left;
    const isInside = low <= end && end <= high;
    const error = Math.abs(Date.parse(etaAt) - end) / left;
    return { error, width, isInside, progress: progressPercent ?? 0, interruptions };
  });

/** What `status` predicts for each run every hour, from a tenth of its steps on; ten runs share an environment. */
export async function forecastRuns(random: Random, runs: number, population: Population): Promise<Forecast[][]> {
  const found: Forecast[][] = [];
  while (found.length < runs) {
    const text = scenarioOf(random, population, Math.min(FLEET, runs - found.length));
    found.push(...(await playFleet(text, found.length + 1)));
  }
  return found;
}

/**
 * Error and coverage over some observations: the share of the remaining time by which half of them, and nine of ten, miss less; how many
 * intervals hold the end, and how wide they are.
 */
export interface EtaFigures {
  observations: number;
  median: number;
  ninth: number;
  inside: number;
  /** Median width of the intervals. */
  width: number;
}

/** Figures of observations; there must be some. */
export function etaFigures(observations: readonly Forecast[]): EtaFigures {
  const errors = observations.map(({ error }) => error).sort((a, b) => a - b);
  const at = (share: number) => errors[Math.min(errors.length - 1, Math.floor(share * errors.length))] ?? Number.NaN;
  const inside = observations.filter(({ isInside }) => isInside).length / observations.length;
  const widths = observations.map(({ width }) => width).sort((a, b) => a - b);
  const width = widths[Math.floor(widths.length / 2)] ?? Number.NaN;
  return { observations: observations.length, median: at(0.5), ninth: at(0.9), inside, width };
}

/** When the observations were made, as rows of the table. */
const WHEN: readonly [name: string, of: (run: readonly Forecast[]) => readonly Forecast[]][] = [
  ['the first after a tenth of the steps', (run) => run.slice(0, 1)],
  ['between a tenth and a half', (run) => run.filter(({ progress }) => progress < 50)],
  ['after a half', (run) => run.filter(({ progress }) => progress >= 50)],
  ['before the first interruption', (run) => run.filter(({ interruptions }) => interruptions === 0)],
  ['after it', (run) => run.filter(({ interruptions }) => interruptions > 0)],
  ['all', (run) => run],
];

/** The figures of one population as rows of a table of Markdown, and how many of its runs ended completed. */
export function etaRows(found: readonly Forecast[][], population: Population): string[] {
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  const completed = found.filter((run) => run.length > 0);
  return WHEN.map(([name, of]) => {
    const { observations, median, ninth, inside, width } = etaFigures(completed.flatMap(of));
    const runs = `${population.name} (${completed.length} runs)`;
    return `| ${runs} | ${name} | ${observations} | ${percent(median)} | ${percent(ninth)} | ${percent(inside)} | ${percent(width)} |`;
  });
}
