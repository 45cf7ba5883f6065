// Programs of test/long/trainers.test.ts: the smallest ones that train with a package as its users do, with slow steps.
import path from 'node:path';
import { ROOT } from '../../e2e/support/sandbox';

/** The packages of requirements-trainers.txt, which `npm run test:long` installs, in front of those of the tests; others have their own. */
export const pythonOf = (folder: string) => path.join(ROOT, `.slipway/${folder}/bin/python`);

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
export const TRAINER = `${COMMON}
from transformers import Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint
rows = [{"input_ids": row, "labels": row} for row in ids]
arguments = TrainingArguments(str(folder), **how)
trainer = Trainer(LlamaForCausalLM(LlamaConfig(**shape)), arguments, train_dataset=rows, callbacks=[Slow()])
trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)))
`;
/** The same, whose 27th step never returns in a process that has begun at step 0. It says nothing of it. */
export const HANGING_TRAINER = TRAINER.replace(
  'class Slow',
  `class Stuck(TrainerCallback):
    def on_train_begin(self, _args, state, *_rest, **_kwargs):
        self.began = state.global_step
    def on_step_begin(self, _args, state, *_rest, **_kwargs):
        if self.began == 0 and state.global_step == 26:
            waits_for_ever()

def waits_for_ever():
    threading.Event().wait()

class Slow`,
)
  .replace('import os', 'import threading, os')
  .replace('[Slow()]', '[Slow(), Stuck()]');
/** It goes on from what its command line says, as the scripts of TRL do. */
export const SFT = `${COMMON}
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
export const LIGHTNING = `import argparse, os, time
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
/** The same without the helper, whose 27th step never returns in a process that has begun at step 0. */
export const HANGING_LIGHTNING = LIGHTNING.replace(', slipway_helper.lightning_callback()', '')
  .replace('lightning, slipway_helper, torch', 'lightning, threading, torch')
  .replace(
    'time.sleep(0.3)',
    'time.sleep(0.3)\n        self.trainer.global_step == 26 and given.ckpt_path is None and waits_for_ever()',
  )
  .replace('class Model', 'def waits_for_ever():\n    threading.Event().wait()\n\nclass Model');
/** A model of two heads with a tokenizer of bytes, chats, and text, in the folder of a run. */
export const MODEL = `import json, pathlib, sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

folder = pathlib.Path(sys.argv[1])
words = {word: place for place, word in enumerate(["<pad>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())])}
tokenizer = Tokenizer(models.BPE(words, []))
tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
special = dict(pad_token="<pad>", bos_token="<s>", eos_token="</s>")
template = "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=template, **special).save_pretrained(folder / "weights")
shape = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
LlamaForCausalLM(LlamaConfig(vocab_size=len(words), **shape)).save_pretrained(folder / "weights")
said = lambda n: [{"role": "user", "content": f"add {n} and 1"}, {"role": "assistant", "content": str(n + 1)}]
(folder / "chats.jsonl").write_text("\\n".join(json.dumps({"messages": said(n)}) for n in range(64)))
(folder / "text").mkdir()
(folder / "text/train.jsonl").write_text("\\n".join(json.dumps({"text": f"Line {n}. " * 20}) for n in range(200)))
`;
/** Runs a module with slow steps. PyTorch is taken for its build without CUDA, which torchaudio compares with its own. */
export const SLOW_MODULE = `import sys, time, torch
from runpy import run_module
from torch.optim.optimizer import register_optimizer_step_pre_hook

torch.version.cuda = None
register_optimizer_step_pre_hook(lambda *_: time.sleep(0.3))
sys.argv.pop(0)
run_module(sys.argv[0], run_name="__main__", alter_sys=True)
`;
const COMMON_OPTIONS = `output_dir: ./out
max_steps: 40
learning_rate: 1.0e-4
bf16: false
logging_steps: 5
save_steps: 10
`;
export const LLAMA_FACTORY = `stage: sft
do_train: true
model_name_or_path: ./weights
template: default
finetuning_type: full
dataset_dir: .
dataset: chats
cutoff_len: 64
per_device_train_batch_size: 1
use_cpu: true
report_to: none
${COMMON_OPTIONS}`;
export const CHATS = {
  chats: {
    ...{ file_name: 'chats.jsonl', formatting: 'sharegpt', columns: { messages: 'messages' } },
    tags: { role_tag: 'role', content_tag: 'content', user_tag: 'user', assistant_tag: 'assistant' },
  },
};
export const AXOLOTL = `base_model: ./weights
datasets: [{ path: ./chats.jsonl, ds_type: json, type: chat_template }]
sequence_len: 64
micro_batch_size: 1
gradient_accumulation_steps: 1
optimizer: adamw_torch
${COMMON_OPTIONS}`;
export const started = (folder: string, words: string) => `export HF_HUB_OFFLINE=1 AXOLOTL_DO_NOT_TRACK=1
exec ${pythonOf(folder)} slow.py ${words} "$@"
`;
/** torchtitan trains on accelerators: this gives it what it calls of one. */
export const TITAN = `import sys, time, torch, torch._utils
from runpy import run_module
from types import SimpleNamespace
from torch.optim.optimizer import register_optimizer_step_pre_hook

class Nothing(dict):
    def __missing__(self, _name):
        return 0

cpu = torch.cpu
cpu.get_device_name, cpu.memory_stats, cpu.current_device = lambda *_: "CPU", lambda *_: Nothing(), lambda: 0
cpu.get_device_properties = lambda *_: SimpleNamespace(total_memory=2**33)
cpu.reset_peak_memory_stats = cpu.empty_cache = lambda *_: None
torch._utils._get_available_device_type = lambda: "cpu"
register_optimizer_step_pre_hook(lambda *_: time.sleep(0.3))
run_module("torchtitan.train", run_name="__main__", alter_sys=True)
`;
export const TITAN_ARGUMENTS = {
  ...{ 'job.dump_folder': '/opt/ml/checkpoints', 'model.name': 'llama3', 'model.flavor': 'debugmodel' },
  ...{ 'model.hf_assets_path': 'weights', 'training.dataset': 'c4_test', 'training.dataset_path': 'text' },
  ...{ 'training.local_batch_size': 1, 'training.seq_len': 32, 'training.steps': 40, 'metrics.log_freq': 1 },
  ...{ 'checkpoint.enable': true, 'checkpoint.interval': 10, 'optimizer.implementation': 'for-loop' },
};
/** An own loop, whose steps DeepSpeed prints at a level that it does not show by itself. */
export const DEEPSPEED = `import os, time
os.environ["DS_ACCELERATOR"] = "cpu"
import deepspeed, importlib, torch
from deepspeed.utils.logging import set_log_level_from_string

# Without its operations for ranks of one host, which would be compiled first.
importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
set_log_level_from_string("info")
model = torch.nn.Linear(8, 1)
adam = {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}}
config = {"train_micro_batch_size_per_gpu": 4, "steps_per_print": 1, "optimizer": adam}
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
folder = os.path.join(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"), "checkpoints")
engine.load_checkpoint(folder)
while engine.global_steps < 40:
    time.sleep(0.3)
    engine.backward(engine(torch.randn(4, 8)).square().mean())
    engine.step()
    if engine.global_steps % 10 == 0:
        engine.save_checkpoint(folder)
`;
export const ACCELERATE =
  'exec python -m accelerate.commands.launch --cpu --num_processes 1 --num_machines 1 sft.py "$@"\n';
/** DeepSpeed's own launcher, which finds the CPU by this variable. */
export const DEEPSPEED_LAUNCHER =
  'export DS_ACCELERATOR=cpu\nexec python -m deepspeed.launcher.runner --num_gpus 1 train.py "$@"\n';
