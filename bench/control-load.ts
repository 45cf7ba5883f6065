import type { SimulationResult } from '../tools/simulation';
import { readScenario } from '../tools/simulation/scenario/load';
import { type Play, play } from '../tools/simulation/simulate';

/** Calls of one run in one tick, by operation. */
export type CallsPerRunTick = Readonly<Record<string, number>>;

export interface Load {
  result: SimulationResult;
  /** Between the end of the starts and the end of the scenario. */
  steady: CallsPerRunTick;
  /** Messages of one run in one tick: each is an observation. */
  observationsPerRunTick: number;
  cpuSeconds: number;
  /** Messages of both plays. */
  observations: number;
}

const FILE = {
  name: 'pretrain',
  code: { source: 'builtin' },
  model: { architecture: { layers: 2, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 128, vocabularySize: 256 } },
  training: { sequenceLength: 128, microBatchSize: 1, globalBatchSize: 128, steps: 100 },
  compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4 },
  data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
};
/** A tick is five minutes. */
const TICKS_AN_HOUR = 12;
const STEADY_HOURS = 2;
/** Starts an hour: a tenth of what CreateTrainingJob allows. */
const STARTS_AN_HOUR = 200;

/**
 * Plays so many runs that train, beside as many jobs of others, with 200 starts an hour before. The load of steady hours is what two plays
 * differ in, of which one is two hours longer.
 */
export async function playLoad(runs: number): Promise<Load> {
  const began = process.cpuUsage();
  const short = await playHours(runs, 0);
  const long = await playHours(runs, STEADY_HOURS);
  const { user, system } = process.cpuUsage(began);
  const runTicks = runs * TICKS_AN_HOUR * STEADY_HOURS;
  const more = (call: string) => (long.result.calls[call]?.count ?? 0) - (short.result.calls[call]?.count ?? 0);
  const steady = Object.keys(long.result.calls).map((call) => [call, more(call) / runTicks] as const);
  const [before, after] = [short.world.queue.sent, long.world.queue.sent];
  return {
    result: long.result,
    steady: Object.fromEntries(steady.filter(([, count]) => count > 0.0005)),
    observationsPerRunTick: (after - before) / runTicks,
    cpuSeconds: (user + system) / 1e6,
    observations: before + after,
  };
}

async function playHours(count: number, steadyHours: number): Promise<Play> {
  const startHours = Math.max(1, count / STARTS_AN_HOUR);
  const until = (startHours + 1 + steadyHours) * 3600;
  const limit = 8 * count + 8;
  const { value, issues } = readScenario(
    {
      schema: 1,
      environment: { name: 'research', regions: { 'us-west-2': {} }, teams: { nlp: {}, speech: {} } },
      limits: {
        'ml.p5.48xlarge for training job usage': limit,
        'Number of instances across all training jobs': limit,
      },
      outside: Array.from({ length: count }, () => ({ instanceType: 'ml.p5.48xlarge', instances: 1 })),
      runs: Array.from({ length: count }, (_, i) => ({
        at: `${Math.round((i * startHours * 3600) / count)}s`,
        id: `r${i}`,
        file: FILE,
        team: i % 2 === 0 ? 'nlp' : 'speech',
        trainsHours: 720,
      })),
      until: `${until}s`,
    },
    (file) => {
      throw new Error(`no file ${file}`);
    },
  );
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  return play(value, 1);
}
