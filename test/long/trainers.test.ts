// Scripts with the trainers that people use, as they are: no progress line of ours, no expression in the run file. On the embedded AWS, with the
// packages of the tests' Python: steps and losses are seen, a host is lost, and the next attempt goes on from the trainer's own checkpoint.
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf } from '../../lib/sandbox/testing';
import { type Deployed, deployedSandbox, TWO_CPU_HOSTS } from '../e2e/support/deployed';
import { PYTHON, ROOT } from '../e2e/support/sandbox';

const RUN = `name: trainer
code: { source: ./src, entryPoint: train.py }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }
checkpoints: { mode: managed }
limits: { maxRuntimeSeconds: 1800 }
`;
const SCRIPT = `import os, pathlib, time
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

class Slow(TrainerCallback):
    def on_step_begin(self, *_args, **_kwargs):
        time.sleep(0.3)

torch.manual_seed(1)
shape = dict(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 64, (64, 8))]
folder = pathlib.Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")) / "checkpoints"
folder.mkdir(exist_ok=True)
arguments = TrainingArguments(str(folder), max_steps=40, logging_steps=5, save_steps=10, report_to=[], use_cpu=True)
trainer = Trainer(LlamaForCausalLM(LlamaConfig(**shape)), arguments, train_dataset=rows, callbacks=[Slow()])
trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)))
`;

let deployed: Deployed;
beforeAll(async () => {
  const files = { 'runs/trainer.yaml': RUN, 'runs/src/train.py': SCRIPT };
  deployed = await deployedSandbox(TWO_CPU_HOSTS.environment, TWO_CPU_HOSTS.quotas, { pythonBin: PYTHON }, files);
});
afterAll(() => deployed?.end());

interface Status {
  state: string;
  attempts: { status: string; firstStep: number; lastStep: number }[];
}

test("transformers' Trainer loses its host and goes on from its checkpoint", async () => {
  await adminOf(deployed).fault({
    ...{ kind: 'instance-killed', jobName: 'e2e-hf-a001', as: 'container' },
    ...{ host: 1, logMatches: '"step":26' },
  });
  const file = path.join(deployed.folder, 'runs/trainer.yaml');
  await deployed.slipway('launch', file, '--yes', '--json', '--run-id', 'hf');
  const { stdout } = await deployed.tryCall(process.execPath, [
    ...[path.join(ROOT, 'dist/cli/slipway.mjs'), 'status', 'hf', '--wait', '--json'],
    ...['--environment', 'e2e', '--region', 'us-west-2'],
  ]);
  const { state, attempts } = JSON.parse(stdout) as Status;
  const logs = await deployed.slipway('logs', 'hf', '--json');
  expect([state, attempts.map(({ status }) => status)], logs).toEqual(['completed', ['Failed', 'Completed']]);
  expect(logs).toContain('which has the format transformers');
  // The trainer logs every fifth loss. Steps before the first of them are passed before the format is known.
  const losses = [...logs.matchAll(/step\\",\\"step\\":(\d+),\\"loss/g)].map(([, step]) => Number(step));
  expect([...new Set(losses)]).toEqual([5, 10, 15, 20, 25, 30, 35, 40]);
  expect(attempts[0]?.lastStep).toBeGreaterThanOrEqual(26);
  // The copy to S3 may be one save behind.
  expect(attempts[1]?.firstStep).toBeGreaterThan(10);
  expect(attempts[1]?.firstStep).toBeLessThanOrEqual(26);
  expect(attempts[1]?.lastStep).toBe(40);
});
