// Trainers that people use, as they are: no expression in the run file, and no progress line of ours except for Lightning. On the embedded
// AWS, with the packages of PyPI on CPU: steps and losses are seen, a host is lost, and the next attempt goes on from the trainer's own
// checkpoint.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf } from '../../lib/sandbox/testing';
import { type Deployed, deployedSandbox, TWO_CPU_HOSTS } from '../e2e/support/deployed';
import { ROOT } from '../e2e/support/sandbox';
import {
  ACCELERATE,
  AXOLOTL,
  CHATS,
  DEEPSPEED,
  DEEPSPEED_LAUNCHER,
  HANGING_LIGHTNING,
  HANGING_TRAINER,
  LIGHTNING,
  LLAMA_FACTORY,
  MODEL,
  pythonOf,
  SFT,
  SLOW_MODULE,
  started,
  TITAN,
  TITAN_ARGUMENTS,
  TRAINER,
} from './support/trainer-programs';

const PYTHON = pythonOf('trainers');

interface Trainer {
  /** `progress.format` of the run file. */
  format: string;
  /** The format that the log names; absent where the helper prints the steps. */
  found?: string;
  files: Record<string, string>;
  entryPoint: string;
  arguments?: Record<string, unknown>;
  /** What the driver says that it passes; absent for a script that looks for its checkpoint itself. */
  passed?: RegExp;
}
const SFT_ARGUMENTS = {
  ...{ output_dir: '/opt/ml/checkpoints', max_steps: 40, logging_steps: 5, save_steps: 10 },
  ...{ report_to: 'none', use_cpu: true, bf16: 'False', max_length: 8 },
};
const HF_RESUMED = /resume from \S+checkpoint-[12]0: with --resume_from_checkpoint \S+checkpoint-[12]0/;
const TRAINERS: Record<string, Trainer> = {
  hf: { format: 'auto', found: 'transformers', files: { 'train.py': TRAINER }, entryPoint: 'train.py' },
  sft: {
    ...{ format: 'transformers', found: 'transformers', files: { 'sft.py': SFT }, entryPoint: 'sft.py' },
    ...{ arguments: SFT_ARGUMENTS, passed: HF_RESUMED },
  },
  accelerate: {
    ...{ format: 'transformers', found: 'transformers', entryPoint: 'train.sh' },
    files: { 'sft.py': SFT, 'train.sh': ACCELERATE },
    ...{ arguments: SFT_ARGUMENTS, passed: HF_RESUMED },
  },
  lightning: {
    ...{ format: 'lightning', files: { 'train.py': LIGHTNING }, entryPoint: 'train.py' },
    passed: /resume from \S+: with --ckpt_path=\S+step=[12]0\.ckpt/,
  },
  llamafactory: {
    ...{ format: 'llama-factory', found: 'transformers', entryPoint: 'train.sh' },
    files: {
      'train.sh': started(
        'llama-factory',
        'llamafactory.cli train train.yaml output_dir="$SAGEMAKER_BASE_DIR/checkpoints"',
      ),
      ...{ 'train.yaml': LLAMA_FACTORY, 'dataset_info.json': JSON.stringify(CHATS), 'slow.py': SLOW_MODULE },
    },
    passed: /resume from \S+: with resume_from_checkpoint=\S+checkpoint-[12]0/,
  },
  axolotl: {
    ...{ format: 'axolotl', found: 'transformers', entryPoint: 'train.sh' },
    files: {
      'train.sh': started('axolotl', 'axolotl.cli.train train.yaml --output-dir "$SAGEMAKER_BASE_DIR/checkpoints"'),
      ...{ 'train.yaml': AXOLOTL, 'slow.py': SLOW_MODULE },
    },
    passed: /resume from \S+: with --resume-from-checkpoint \S+checkpoint-[12]0/,
  },
  torchtitan: {
    ...{ format: 'torchtitan', found: 'torchtitan', files: { 'titan.py': TITAN }, entryPoint: 'titan.py' },
    arguments: TITAN_ARGUMENTS,
  },
  deepspeed: { format: 'deepspeed', found: 'deepspeed', files: { 'train.py': DEEPSPEED }, entryPoint: 'train.py' },
  'deepspeed-launcher': {
    ...{ format: 'deepspeed', found: 'deepspeed', entryPoint: 'train.sh' },
    files: { 'train.py': DEEPSPEED, 'train.sh': DEEPSPEED_LAUNCHER },
  },
};
/** Trainers that stop working without a word, in a run file that names nothing but their format; what the driver says after that. */
const HANGING: Record<string, Trainer & { passed: RegExp; lost: string }> = {
  'hf-hangs': {
    ...{ format: 'transformers', files: { 'train.py': HANGING_TRAINER }, entryPoint: 'train.py' },
    ...{ passed: /resumeFrom\\":\\"\S+checkpoint-20\\"/, lost: '6' },
  },
  'lightning-hangs': {
    ...{ format: 'lightning', files: { 'train.py': HANGING_LIGHTNING }, entryPoint: 'train.py' },
    ...{ passed: /resume from \S+: with --ckpt_path=\S+step=20\.ckpt/, lost: 'null' },
  },
};
const runFile = (name: string, { entryPoint, arguments: given = {}, format }: Trainer) => `name: trainer
code: { source: ./${name}, entryPoint: ${entryPoint}, arguments: ${JSON.stringify(given)} }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }
checkpoints: { mode: managed }
limits: { maxRuntimeSeconds: 1800 }
progress: { format: ${format} }
environmentVariables: { SLIPWAY_WATCHDOG_SECONDS: "${name in HANGING ? 40 : 1200}" }
distribution: { launcher: ${entryPoint.endsWith('.sh') ? 'script' : 'torchrun'} }
`;

let deployed: Deployed;
beforeAll(async () => {
  expect(existsSync(PYTHON), 'npm run test:long makes it').toBe(true);
  const files = Object.entries({ ...TRAINERS, ...HANGING }).flatMap(([name, trainer]) => [
    [`runs/${name}.yaml`, runFile(name, trainer)],
    ...Object.entries(trainer.files).map(([file, text]) => [`runs/${name}/${file}`, text]),
  ]);
  deployed = await deployedSandbox(
    ...[TWO_CPU_HOSTS.environment, TWO_CPU_HOSTS.quotas, { pythonBin: PYTHON }],
    Object.fromEntries(files),
  );
  for (const name of ['llamafactory', 'axolotl', 'torchtitan'])
    await deployed.call(PYTHON, ['-c', MODEL, path.join(deployed.folder, 'runs', name)]);
});
afterAll(() => deployed?.end());

interface Status {
  state: string;
  attempts: { status: string; firstStep: number; lastStep: number }[];
  committedStep: number | null;
}

test.each([
  ['lightning', PYTHON],
  ['transformers', PYTHON],
  ['transformers', pythonOf('llama-factory')], // an older version
])("the helper's callback for %s saves and leaves when its run must stop: %s", async (name, python) => {
  const words = ['-m', 'pytest', '-q', path.join(ROOT, 'test/containers/test_slipway_helper.py'), '-k', name];
  expect((await deployed.tryCall(python, words)).stdout).toMatch(/^\.\s/);
});

test.each(Object.entries(TRAINERS))('%s loses its host and goes on from its checkpoint', async (id, trainer) => {
  await adminOf(deployed).fault({
    ...{ kind: 'instance-killed', jobName: `e2e-${id}-a001`, as: 'container' },
    ...{ host: 1, logMatches: '"step":2[6-9]' },
  });
  const file = path.join(deployed.folder, `runs/${id}.yaml`);
  await deployed.slipway('launch', file, '--yes', '--json', '--run-id', id);
  const { stdout } = await deployed.tryCall(process.execPath, [
    ...[path.join(ROOT, 'dist/cli/slipway.mjs'), 'status', id, '--wait', '--json'],
    ...['--environment', 'e2e', '--region', 'us-west-2'],
  ]);
  const { state, attempts, committedStep } = JSON.parse(stdout) as Status;
  const logs = await deployed.slipway('logs', id, '--json');
  expect([state, attempts.map(({ status }) => status)], logs).toEqual(['completed', ['Failed', 'Completed']]);
  if (trainer.found) expect(logs).toContain(`which has the format ${trainer.found}`);
  const losses = [...logs.matchAll(/step\\",\\"step\\":(\d+),\\"loss/g)].map(([, step]) => Number(step));
  // transformers logs every fifth loss: five before the host is lost, and four at least after that.
  if (trainer.found === 'transformers') {
    expect(losses.length, logs).toBeGreaterThanOrEqual(9);
    expect(losses.filter((step) => step % 5 !== 0)).toEqual([]);
  } else if (trainer.found !== 'deepspeed') expect(losses.length, logs).toBeGreaterThan(5);
  expect(attempts[0]?.lastStep).toBeGreaterThanOrEqual(26);
  if (trainer.passed) expect(logs).toMatch(trainer.passed);
  // Seen in S3 by the control plane.
  if (trainer.format !== 'auto') expect(committedStep, stdout).toBe(40);
  // The copy to S3 may be one save behind, and the first step is seen with the first loss.
  expect(attempts[1]?.firstStep).toBeGreaterThan(10);
  expect(attempts[1]?.firstStep).toBeLessThanOrEqual(30);
  expect(attempts[1]?.lastStep).toBe(40);
});

test.each(Object.entries(HANGING))(
  '%s: the hang is found from its output, and it goes on',
  async (id, { passed, lost }) => {
    const file = path.join(deployed.folder, `runs/${id}.yaml`);
    await deployed.slipway('launch', file, '--yes', '--json', '--run-id', id);
    const { stdout } = await deployed.tryCall(process.execPath, [
      ...[path.join(ROOT, 'dist/cli/slipway.mjs'), 'status', id, '--wait', '--json'],
      ...['--environment', 'e2e', '--region', 'us-west-2'],
    ]);
    const { state, committedStep } = JSON.parse(stdout) as Status;
    const logs = await deployed.slipway('logs', id, '--json');
    expect([state, committedStep], logs).toEqual(['completed', 40]);
    expect(logs).toMatch(/\\"hang\\",\\"reason\\":\\"no progress for 4\d s after step 2[56]\\"/);
    expect(logs, 'stacks').toMatch(/line \d+ in waits_for_ever/);
    expect(logs).toMatch(passed);
    expect(logs).toContain(`\\"lostSteps\\":${lost},`);
    expect([...logs.matchAll(/step\\",\\"step\\":(\d+)/g)].at(-1)?.[1], logs).toBe('40');
  },
);
