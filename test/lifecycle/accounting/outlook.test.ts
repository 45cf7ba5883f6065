// The end that status foretells, against the ends of simulated runs with failures.
import { expect, test } from 'vitest';
import type { StatusAnswer } from '../../../lib/contracts/control';
import { onRequest } from '../../../lib/handlers/control/control';
import { countAt } from '../../../lib/lifecycle/accounting/outlook';
import { EPOCH_MS } from '../../../lib/simulation/core/epoch';
import { Random } from '../../../lib/simulation/core/random';
import { Judge } from '../../../lib/simulation/invariants/judge';
import { loadScenario } from '../../../lib/simulation/scenario/load';
import { World } from '../../../lib/simulation/world/world';

/** The same runs each time: the looks at one run lie inside or outside together, so that the share of eight runs varies much by seed. */
const seed = Number(process.env.SLIPWAY_SEED ?? 20261122);
/** Even; more of them measure the figures that CHANGELOG.md tells: SLIPWAY_OUTLOOK_RUNS=40. */
const RUNS = Number(process.env.SLIPWAY_OUTLOOK_RUNS ?? 8);
const TRAINS_HOURS = 24;

/** One run on eight hosts that some of them fail under, at times drawn with this many hours between two. */
function scenarioOf(random: Random): string {
  const faults: string[] = [];
  const hoursBetween = 4 + 20 * random.next();
  for (let at = 0.5, attempt = 1; ; attempt++) {
    at += -Math.log(1 - random.next()) * hoursBetween;
    if (at > TRAINS_HOURS * 1.2) break;
    faults.push(
      `  - { at: ${Math.round(at * 60)}m, job: "a#${attempt}", ends: Failed, reason: "InternalServerError: a host was lost" }`,
    );
  }
  return `schema: 1
environment: { name: research, regions: { us-west-2: {} }, teams: { nlp: {} } }
limits: { ml.p4d.24xlarge for training job usage: 8, Number of instances across all training jobs: 8 }
runs:
  - id: a
    file:
      name: a
      code: { source: builtin }
      model: { architecture: { layers: 2, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 128, vocabularySize: 256 } }
      training: { sequenceLength: 128, microBatchSize: 1, globalBatchSize: 256, steps: 20000 }
      data: [{ channel: train, s3: "s3://{dataBucket}/tokens/" }]
      compute: { instanceType: ml.p4d.24xlarge, instanceCount: 8 }
    trainsHours: ${TRAINS_HOURS}
${faults.length > 0 ? `faults:\n${faults.join('\n')}\n` : ''}until: ${TRAINS_HOURS * 2}h
`;
}

interface Foretold {
  /** Share of the remaining time by which the foretold end misses the real one. */
  error: number;
  isInside: boolean;
}

/** What status says every hour, judged by the end. */
async function playOne(text: string, number: number): Promise<Foretold[]> {
  const { value, issues } = loadScenario(text, () => '');
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  const world = new World(value, number, new Judge());
  const seen: { at: number; status: StatusAnswer }[] = [];
  const look = () => {
    const run = world.runs[0];
    if (run?.runId === undefined || run.isOver) return;
    world.functions.control.invoke(
      (deps) => onRequest(deps, { action: 'status', runId: run.runId }, world.names.aliasArn(run.team)),
      (ending) => {
        if (ending.kind === 'answer') seen.push({ at: world.clock.now, status: ending.value as StatusAnswer });
      },
    );
  };
  for (let hour = 1; hour < TRAINS_HOURS * 2; hour += 1) world.clock.schedule(hour * 3_600_000, look);
  await world.play();
  const run = world.runs[0];
  if (run?.record?.state !== 'completed' || run.record.endedAt === undefined)
    throw new Error(`the run ${run?.record?.state}`);
  const end = run.record.endedAt;
  return seen.flatMap(({ at, status: { etaAt, etaInterval80, progressPercent } }) => {
    if (!etaAt || !etaInterval80 || (progressPercent ?? 0) < 10) return [];
    const left = end - (EPOCH_MS + at);
    const [low, high] = etaInterval80.map((time) => Date.parse(time)) as [number, number];
    return { error: Math.abs(Date.parse(etaAt) - end) / left, isInside: low <= end && end <= high };
  });
}

test(`after a tenth of a run half of the foretold ends miss by less than a tenth of what is left (seed ${seed})`, async () => {
  const random = new Random(seed);
  const firsts: number[] = [];
  const all: Foretold[] = [];
  for (let i = 0; i < RUNS; i++) {
    const foretold = await playOne(scenarioOf(random), i + 1);
    firsts.push(foretold[0]?.error ?? Number.NaN);
    all.push(...foretold);
  }
  const sorted = [...firsts].sort((a, b) => a - b);
  const inside = all.filter(({ isInside }) => isInside).length / all.length;
  const figures = { median: sorted[RUNS / 2], worst: sorted[RUNS - 1], inside, looks: all.length };
  if (process.env.SLIPWAY_OUTLOOK_RUNS) console.log(figures);
  expect(figures.median, JSON.stringify(figures)).toBeLessThan(0.1);
  expect(figures.inside, JSON.stringify(figures)).toBeGreaterThan(0.6);
}, 120_000);

test.each([
  [0.1, 1, 0, 0],
  [0.9, 1, 0.1, 0],
  [0.9, 1, 1, 3],
  [0.5, 1000, 4, 4],
])('%f of a negative binomial of shape %f and mean %f lies below %i', (share, shape, mean, count) => {
  expect(countAt(share, shape, mean)).toBe(count);
});
