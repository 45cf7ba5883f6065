// AWS's own training toolkit starts from the requests of the toolkit contract: the words and variables that its launcher gets are
// those that the run file asks for. Skipped where the toolkit is not installed (.slipway/toolkit, made by scripts/test.mjs).
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { runCli } from '../support/run-cli';
import { DESCRIPTOR } from '../support/runs';

const ROOT = path.join(__dirname, '../..');
const PYTHON = path.join(ROOT, '.slipway/toolkit/bin/python');
const GPUS = 8;
const folder = mkdtempSync(path.join(tmpdir(), 'slipway-toolkit-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface Started {
  program: string;
  words: string[];
  environ: Record<string, string>;
}

/** What the toolkit's launcher was called with on the first host. */
async function start(file: string, ...set: string[]): Promise<Started> {
  const place = mkdtempSync(path.join(folder, `${path.basename(file, '.yaml')}-`));
  const [out, base] = [path.join(place, 'out'), path.join(place, 'base')];
  mkdirSync(base);
  const environment = path.join(folder, 'environment.json');
  writeFileSync(environment, JSON.stringify(DESCRIPTOR));
  const options = ['--environment', environment, '--out', out, ...set.flatMap((one) => ['--set', one])];
  const { code, stderr } = await runCli('launch', path.join(ROOT, 'runs', file), '--dry-run', ...options);
  expect(code, stderr).toBe(0);
  const script = path.join(__dirname, 'toolkit_start.py');
  await promisify(execFile)(PYTHON, [script, out, base, String(GPUS)]);
  const { words, environ } = JSON.parse(readFileSync(path.join(base, 'started.json'), 'utf8')) as Omit<
    Started,
    'program'
  >;
  return { program: path.basename(words[0] ?? ''), words: words.slice(1), environ };
}

const after = (words: readonly string[], option: string) => words[words.indexOf(option) + 1];

test.skipIf(!existsSync(PYTHON))(
  'SMP v1: mpirun over all ranks, its parameters as SM_HP_MP_PARAMETERS, the script with its arguments',
  async () => {
    const { program, words, environ } = await start(
      'sagemaker/gpt-j-6b-sst2-smp-v1.yaml',
      'compute.instanceCount=2',
      'training.globalBatchSize=128',
    );
    expect([program, after(words, '--host'), after(words, '-np')]).toEqual(['mpirun', 'algo-1:8,algo-2:8', '16']);
    expect(JSON.parse(environ.SM_HP_MP_PARAMETERS ?? '')).toMatchObject({
      ddp: true,
      fp16: true,
      tensor_parallel_degree: 4,
      pipeline_parallel_degree: 1,
      optimize: 'speed',
      prescaled_batch: true,
    });
    expect(words.slice(words.indexOf('mpi4py') + 1)).toEqual(
      expect.arrayContaining(['finetune_sst2.py', '--model_name_or_path', 'EleutherAI/gpt-j-6b', '--task', 'sst2']),
    );
  },
);

test.skipIf(!existsSync(PYTHON))('SMP v1 with pipelines: every host, degrees and MPI options as asked', async () => {
  const { words, environ } = await start(
    'sagemaker/pipeline6-tensor4-smp-v1.yaml',
    'distribution.mpiOptions=--mca x 1',
  );
  expect([after(words, '--host'), after(words, '-np')]).toEqual(['algo-1:8,algo-2:8,algo-3:8', '24']);
  expect(words.join(' ')).toContain('--mca x 1');
  expect(JSON.parse(environ.SM_HP_MP_PARAMETERS ?? '')).toMatchObject({
    pipeline_parallel_degree: 6,
    tensor_parallel_degree: 4,
  });
});

test.skipIf(!existsSync(PYTHON))('SMDDP: mpirun in its homogeneous mode', async () => {
  const { program, words } = await start('sagemaker/ddp-smddp-allreduce.yaml');
  expect([program, after(words, '-np')]).toEqual(['mpirun', '16']);
  expect(words).toContain('SMDATAPARALLEL_USE_HOMOGENEOUS=1');
  expect(words.slice(words.indexOf('mpi4py') + 1)).toEqual(['train.py', '--backend', 'smddp']);
});

test.skipIf(!existsSync(PYTHON))('torchrun: one process per GPU on every host', async () => {
  const { program, words } = await start('trainers/plain-torchrun.yaml', 'distribution.contract=toolkit');
  expect(program).toBe('torchrun');
  expect(words.join(' ')).toBe(
    '--nnodes 2 --nproc_per_node 8 --master_addr algo-1 --master_port 7777 --node_rank 0 train.py --epochs 1',
  );
});
