import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { expectEqual, type FaultCase, remember, type Seen } from './fault-case';
import { PYTHON, ROOT, type World } from './world';

const run = promisify(execFile);
const STEPS = 24;
const SHARDS = `
import sys
from pathlib import Path
from slipway_trainer.tokenize.documents import documents
from slipway_trainer.tokenize.shard_writer import ShardWriter, new_index
from slipway_trainer.tokenize.tokenizers import ByteTokenizer
folder = Path(sys.argv[1])
(folder / "tokens").mkdir()
(folder / "text.txt").write_text("".join(f"{n} times {n + 1} is {n * (n + 1)}. " for n in range(900)))
writer = ShardWriter(folder / "tokens", 0, new_index(ByteTokenizer(), "faults"), 8000)
writer.write_all(documents([folder / "text.txt"], (0, 0), "text"), ByteTokenizer())
`;

/** Token shards in the data bucket, made by the trainer's own writer. */
async function uploadTokens(world: World): Promise<void> {
  const env = { PYTHONPATH: [`${ROOT}/containers/driver`, `${ROOT}/containers/trainer`].join(':') };
  await run(PYTHON, ['-c', SHARDS, world.folder], { env });
  const folder = path.join(world.folder, 'tokens');
  for (const name of readdirSync(folder)) {
    const Body = readFileSync(path.join(folder, name));
    await world.s3.send(new PutObjectCommand({ Bucket: world.dataBucket, Key: `faults-tokens/${name}`, Body }));
  }
}

/** A run of the built-in trainer: the same model, data, seed and batch whatever the number of ranks. */
const trainerFile = (instances: number, stepSeconds: number, more: string[] = []): string[] => [
  'model: { architecture: { layers: 2, hiddenSize: 32, attentionHeads: 2, ffnHiddenSize: 64, vocabularySize: 512 } }',
  `training: { sequenceLength: 64, microBatchSize: 1, globalBatchSize: 8, steps: ${STEPS}, precision: fp32, seed: 11 }`,
  `code: { source: builtin, arguments: { learning-rate: 3.0e-3, warmup-steps: 2, save-every-steps: 4, minimum-step-seconds: ${stepSeconds} } }`,
  `compute: { instanceType: ml.m5.xlarge, instanceCount: ${instances} }`,
  'distribution: { library: fsdp, processesPerHost: 2 }',
  'data: [{ channel: train, s3: "s3://{dataBucket}/faults-tokens/" }]',
  'limits: { maxRuntimeSeconds: 3600, maxAttempts: 4, retryInternalErrors: 1 }',
  ...(more.length > 0 ? more : ['checkpoints: { mode: direct, keep: 3 }']),
];

/** The same run on two hosts of one rank, with a trouble of scripts/faults/script/troubled_trainer.py. */
function troubledFile(
  trouble: 'gpu' | 'network' | 'frozen',
  host: string,
  spares: number,
  more: Record<string, number>,
  memory = 'off',
): string[] {
  const given = { 'learning-rate': 3.0e-3, 'warmup-steps': 2, 'minimum-step-seconds': 0.1, ...more };
  return [
    ...trainerFile(2, 0).filter((line) => !/^(code|compute|distribution|checkpoints):/.test(line)),
    `code: { source: ./script, entryPoint: troubled_trainer.py, arguments: ${JSON.stringify(given)} }`,
    `compute: { instanceType: ml.m5.xlarge, instanceCount: 2, spareInstances: ${spares} }`,
    'distribution: { library: fsdp, processesPerHost: 1 }',
    `checkpoints: { mode: direct, keep: 3, committedMarker: "step-*/COMMITTED.json", memory: ${memory} }`,
    `environmentVariables: { TROUBLE: ${trouble}, TROUBLED: ${host} }`,
  ];
}

/** The progress lines of one kind in a run's log, of all its hosts. */
async function progressOf(world: World, id: string, event: string): Promise<string[]> {
  const lines = (await world.slipway('logs', id, '--json')).split('\n').filter(Boolean);
  const messages = lines.map((line) => (JSON.parse(line) as { message: string }).message);
  return messages.filter((message) => message.startsWith(`slipway {"event":"${event}"`));
}

/** Loss of each step as rank 0 printed it; of a step that was done twice, each. */
async function losses(world: World, id: string): Promise<Map<number, number[]>> {
  const found = new Map<number, number[]>();
  for (const line of await progressOf(world, id, 'step')) {
    const { step, loss } = JSON.parse(line.slice('slipway '.length)) as { step: number; loss: number };
    found.set(step, [...(found.get(step) ?? []), loss]);
  }
  return found;
}

let prepared: Promise<Map<number, number[]>> | undefined;

/** Losses of a run that nothing happens to, on two ranks. Made once for all cases. */
function undisturbed(world: World): Promise<Map<number, number[]>> {
  prepared ??= (async () => {
    await uploadTokens(world);
    await world.launchFile('n20-undisturbed', trainerFile(1, 0.05));
    const status = await world.over('n20-undisturbed');
    expectEqual('state of the undisturbed run', status.state, 'completed');
    return losses(world, 'n20-undisturbed');
  })();
  return prepared;
}

/** Every step's loss, first to last, against the undisturbed run's. A skipped or repeated sample shows in the first step after it. */
function expectSameLosses(
  seen: Seen,
  reference: Map<number, number[]>,
  own: Map<number, number[]>,
  tolerance: number,
): void {
  const steps = [...own.keys()].sort((a, b) => a - b);
  expectEqual('last step', steps.at(-1), STEPS);
  for (const step of steps) {
    const wanted = reference.get(step)?.[0] ?? Number.NaN;
    for (const loss of own.get(step) ?? []) {
      const apart = Math.abs(loss - wanted) / wanted;
      if (!(apart <= tolerance)) throw new Error(`loss of step ${step}: must be ${wanted}, got ${loss}`);
    }
  }
  const twice = steps.filter((step) => (own.get(step) ?? []).length > 1);
  seen.lines.push(
    `losses of steps ${steps[0]} to ${steps.at(-1)} are those of the undisturbed run, ${tolerance === 0 ? 'to the last digit' : `within ${tolerance}`}`,
    `steps done twice: ${twice.join(', ') || 'none'}`,
  );
}

/** Launches a run that goes wrong and must complete within its first attempt, as the undisturbed one. Returns its losses. */
async function sameLossesInOneAttempt(world: World, seen: Seen, id: string, file: readonly string[]) {
  const reference = await undisturbed(world);
  await world.launchFile(id, file);
  const status = await world.over(id);
  remember(seen, status);
  expectEqual('state', status.state, 'completed');
  expectEqual('attempts', status.attempts.length, 1);
  const found = await losses(world, id);
  expectSameLosses(seen, reference, found, 0);
  return found;
}

/** A step that no checkpoint precedes stops at its beginning: the ranks end before their collectives give up, and repeat few steps. */
const stalled = (
  name: string,
  injected: string,
  resumesFrom: string,
  repeated: number,
  ...trouble: Parameters<typeof troubledFile>
): FaultCase => ({
  n: 13,
  name,
  alone: true,
  injected,
  async run(world, seen) {
    const id = `n13-${trouble[0]}`;
    const found = await sameLossesInOneAttempt(world, seen, id, troubledFile(...trouble));
    const stall = await progressOf(world, id, 'stall');
    const resumed = await progressOf(world, id, 'resume');
    const hang = await progressOf(world, id, 'hang');
    seen.lines.push(...stall, ...hang, ...resumed);
    expectEqual('names the frozen rank', / rank 1 did not respond/.test(hang.join()), trouble[0] === 'frozen');
    expectEqual('stalls that were reported', stall.length, 1);
    expectEqual('sources of the state', resumed.map((line) => line.match(/"source":"(\w+)"/)?.[1]).join(), resumesFrom);
    const twice = [...found].filter(([, of]) => of.length > 1).map(([step]) => step);
    if (twice.length > repeated)
      throw new Error(`steps done twice: must be at most ${repeated}, got ${twice.join(', ')}`);
  },
});

const NO_SAVE_IS_DUE = { 'save-every-steps': 1000, 'steady-timeout-seconds': 0 };
const stalls = [
  stalled(
    'stalled-step-is-saved',
    'step 11 stands still; no checkpoint is due before the last step',
    's3',
    0,
    'network',
    'algo-2',
    0,
    { ...NO_SAVE_IS_DUE, 'collective-timeout-seconds': 60 },
  ),
  stalled(
    'frozen-rank-with-copies-in-memory',
    'SIGSTOP of a rank in step 11; every step has a copy in memory, and no checkpoint is due',
    'memory',
    1,
    'frozen',
    'algo-2',
    0,
    { ...NO_SAVE_IS_DUE, 'collective-timeout-seconds': 40 },
    '{ everySteps: 1, copies: 2 }',
  ),
];

export const TRAINER_CASES: readonly FaultCase[] = [
  ...(['algo-1', 'algo-2'] as const).map(
    (host): FaultCase => ({
      n: 16,
      name: `broken-gpu-of-${host}-with-a-spare-host`,
      alone: true,
      injected: `a rank of ${host} reports an uncorrectable ECC error at step 11; the job has a third host`,
      async run(world, seen) {
        const id = `n16-spare-${host}`;
        await sameLossesInOneAttempt(world, seen, id, troubledFile('gpu', host, 1, { 'save-every-steps': 4 }));
        const restarts = await progressOf(world, id, 'restart');
        seen.lines.push(...restarts.slice(0, 1));
        if (!restarts[0]?.includes(`"replaced":{"${host}":"algo-3"}`)) throw new Error('no spare host took a place');
      },
    }),
  ),
  ...stalls,
  {
    n: 19,
    name: 'world-size-change',
    alone: true,
    injected: 'a run of four ranks on two instances is stopped; another one goes on from its checkpoint with two ranks',
    async run(world, seen) {
      const reference = await undisturbed(world);
      // Another run names it, so that it must look like a run id.
      const [first, second] = ['n19-four-ranks-260101000000', 'n19-two-ranks'];
      // Slow enough to be stopped before its last step.
      await world.launchFile('n19-four-ranks', trainerFile(2, 2), first);
      await world.untilCommitted(first, 4);
      await world.slipway('stop', first);
      const stopped = await world.over(first);
      remember(seen, stopped);
      expectEqual('state', stopped.state, 'stopped');
      await world.launchFile(second, trainerFile(1, 0.05, [`checkpoints: { mode: direct, startFrom: ${first} }`]));
      const status = await world.over(second);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      const [before, after] = [await losses(world, first), await losses(world, second)];
      const begins = Math.min(...after.keys());
      expectEqual('first step of the second run', begins, (stopped.committedStep ?? 0) + 1);
      for (const [step, found] of before) if (!after.has(step)) after.set(step, found);
      // Sums over four ranks and over two differ in their last digits.
      expectSameLosses(seen, reference, after, 1e-3);
    },
  },
  {
    n: 20,
    name: 'order-after-resume',
    alone: true,
    injected: 'SIGKILL of every process at step 14; the next attempt resumes from a committed step',
    async run(world, seen) {
      const reference = await undisturbed(world);
      const id = 'n20-resumed';
      await world.fault({ kind: 'instance-killed', as: 'container', jobName: `faults-${id}-a001`, step: 14 });
      await world.launchFile(id, trainerFile(1, 0.25));
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      expectEqual('attempts', status.attempts.length, 2);
      expectSameLosses(seen, reference, await losses(world, id), 0);
    },
  },
];
