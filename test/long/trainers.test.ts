// Trainers that people use, as they are: no expression in the run file, and no progress line of ours except for Lightning. On the embedded
// AWS, with the packages of PyPI on CPU: steps and losses are seen, a host is lost, and the next attempt goes on from the trainer's own
// checkpoint.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf } from '../../lib/sandbox/testing';
import { type Deployed, deployedSandbox, TWO_CPU_HOSTS } from '../e2e/support/deployed';
import { ROOT } from '../e2e/support/sandbox';

/** The packages of requirements-trainers.txt, which `npm run test:long` installs, in front of those of the tests. */
const PYTHON = path.join(ROOT, '.slipway/trainers/bin/python');

const COMMON = `import os, pathlib, time
import torch
from transformers import LlamaConfig, LlamaForCausalLM, TrainerCallback

class Slow(TrainerCallback):
    def on_step_begin(self, *_args, **_kwargs):
        time.sleep(0.3)

torch.manual_seed(1)
shape = dict(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
ids = torch.randint(0, 64, (64, 8))
folder = pathlib.Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")) / "checkpoints"
folder.mkdir(exist_ok=True)
how = dict(max_steps=40, logging_steps=5, save_steps=10, report_to=[], use_cpu=True)
`;
/** It looks for its checkpoint itself, as most scripts do. */
const TRAINER = `${COMMON}
from transformers import Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint
rows = [{"input_ids": row, "labels": row} for row in ids]
arguments = TrainingArguments(str(folder), **how)
trainer = Trainer(LlamaForCausalLM(LlamaConfig(**shape)), arguments, train_dataset=rows, callbacks=[Slow()])
trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)))
`;
/** It goes on from what its command line says, as the scripts of TRL do. */
const SFT = `${COMMON}
from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer, TrlParser
(arguments,) = TrlParser((SFTConfig,)).parse_args_and_config()
words = {f"w{n}": n for n in range(62)} | {"<pad>": 62, "<eos>": 63}
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="<pad>")), pad_token="<pad>", eos_token="<eos>"
)
rows = Dataset.from_dict({"input_ids": ids.tolist()})
model = LlamaForCausalLM(LlamaConfig(**shape))
trainer = SFTTrainer(model, arguments, train_dataset=rows, processing_class=tokenizer, callbacks=[Slow()])
trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)
`;
/** With the callback of the helper: after a resume within an epoch, the bar of Lightning says no step that could be known. */
const LIGHTNING = `import argparse, os, time
import lightning, slipway_helper, torch
from lightning.pytorch.callbacks import ModelCheckpoint, TQDMProgressBar
from lightning.pytorch.plugins.environments import LightningEnvironment

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, _):
        time.sleep(0.3)
        loss = self.layer(batch).square().mean()
        self.log("train_loss", loss, prog_bar=True)
        return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)

parser = argparse.ArgumentParser()
parser.add_argument("--ckpt_path")
given = parser.parse_args()
folder = os.path.join(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"), "checkpoints")
keeper = ModelCheckpoint(folder, every_n_train_steps=10, save_top_k=-1)
trainer = lightning.Trainer(
    max_steps=40, logger=False, callbacks=[keeper, TQDMProgressBar(), slipway_helper.lightning_callback()],
    # One process: Lightning would start MPI to find out, because the tests' Python has it.
    accelerator="cpu", devices=1, plugins=[LightningEnvironment()],
)
trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(128, 4), batch_size=4), ckpt_path=given.ckpt_path)
`;
const ACCELERATE = 'exec python -m accelerate.commands.launch --cpu --num_processes 1 --num_machines 1 sft.py "$@"\n';

interface Trainer {
  format: string;
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
  hf: { format: 'transformers', files: { 'train.py': TRAINER }, entryPoint: 'train.py' },
  sft: {
    ...{ format: 'transformers', files: { 'sft.py': SFT }, entryPoint: 'sft.py' },
    ...{ arguments: SFT_ARGUMENTS, passed: HF_RESUMED },
  },
  accelerate: {
    ...{ format: 'transformers', files: { 'sft.py': SFT, 'train.sh': ACCELERATE }, entryPoint: 'train.sh' },
    ...{ arguments: SFT_ARGUMENTS, passed: HF_RESUMED },
  },
  lightning: {
    ...{ format: 'lightning', files: { 'train.py': LIGHTNING }, entryPoint: 'train.py' },
    passed: /resume from \S+: with --ckpt_path=\S+step=[12]0\.ckpt/,
  },
};
const runFile = (name: string, { entryPoint, arguments: given = {}, format, passed }: Trainer) => `name: trainer
code: { source: ./${name}, entryPoint: ${entryPoint}, arguments: ${JSON.stringify(given)} }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }
checkpoints: { mode: managed }
limits: { maxRuntimeSeconds: 1800 }
${passed ? `progress: { format: ${format} }` : ''}
`;

let deployed: Deployed;
beforeAll(async () => {
  expect(existsSync(PYTHON), 'npm run test:long makes it').toBe(true);
  const files = Object.entries(TRAINERS).flatMap(([name, trainer]) => [
    [`runs/${name}.yaml`, runFile(name, trainer)],
    ...Object.entries(trainer.files).map(([file, text]) => [`runs/${name}/${file}`, text]),
  ]);
  deployed = await deployedSandbox(
    ...[TWO_CPU_HOSTS.environment, TWO_CPU_HOSTS.quotas, { pythonBin: PYTHON }],
    Object.fromEntries(files),
  );
});
afterAll(() => deployed?.end());

interface Status {
  state: string;
  attempts: { status: string; firstStep: number; lastStep: number; resumeFrom?: { step: number } | null }[];
}

test("the helper's callback for Lightning saves and leaves when its run must stop", async () => {
  const words = ['-m', 'pytest', '-q', path.join(ROOT, 'test/containers/test_slipway_helper.py'), '-k', 'lightning'];
  expect((await deployed.tryCall(PYTHON, words)).stdout).toMatch(/^\.\s/);
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
  const { state, attempts } = JSON.parse(stdout) as Status;
  const logs = await deployed.slipway('logs', id, '--json');
  expect([state, attempts.map(({ status }) => status)], logs).toEqual(['completed', ['Failed', 'Completed']]);
  if (trainer.format === 'transformers') expect(logs).toContain('which has the format transformers');
  // transformers logs every fifth loss. Steps before the first of them are passed before the format is known.
  const losses = [...logs.matchAll(/step\\",\\"step\\":(\d+),\\"loss/g)].map(([, step]) => Number(step));
  // The loss and the bar come through two pipes, so that under load a loss may be shown with the step before.
  const logged = new Set(losses.map((step) => Math.ceil(step / 5) * 5));
  if (trainer.format === 'transformers') expect([...logged], logs).toEqual([5, 10, 15, 20, 25, 30, 35, 40]);
  else expect(losses.length, logs).toBeGreaterThan(5);
  expect(attempts[0]?.lastStep).toBeGreaterThanOrEqual(26);
  if (trainer.passed) expect(logs).toMatch(trainer.passed);
  // The copy to S3 may be one save behind, and the first step is seen with the first loss.
  expect(attempts[1]?.firstStep).toBeGreaterThan(10);
  expect(attempts[1]?.firstStep).toBeLessThanOrEqual(30);
  expect(attempts[1]?.lastStep).toBe(40);
});
