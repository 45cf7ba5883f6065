"""slipway_helper with the real packages: what it prints is what the driver reads, and a run that must stop saves and leaves with 76."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forked import run_forked
from slipway_driver.exit_codes import HAND_OVER as DRIVERS_HAND_OVER
from slipway_driver.output_lines import Lines
from slipway_driver.progress import parse_event

ROOT = Path(__file__).parents[2]
TRAINER = """
import torch, slipway_helper
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 64, (64, 8))]
config = LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
arguments = TrainingArguments("out", max_steps=24, logging_steps=4, save_steps=8, report_to=[], use_cpu=True, disable_tqdm=True)
trainer = Trainer(LlamaForCausalLM(config), arguments, train_dataset=rows, callbacks=[slipway_helper.transformers_callback()])
trainer.train(resume_from_checkpoint=slipway_helper.resume_from())
print("after")
"""
LIGHTNING = """
import torch, slipway_helper, lightning
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.environments import LightningEnvironment
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, _):
        return self.layer(batch).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)
callbacks = [ModelCheckpoint("out", every_n_train_steps=8, save_top_k=-1), slipway_helper.lightning_callback()]
# One process: Lightning would start MPI to find out, because the tests' Python has it.
alone = dict(accelerator="cpu", devices=1, plugins=[LightningEnvironment()])
trainer = lightning.Trainer(max_steps=24, logger=False, callbacks=callbacks, **alone)
data = torch.utils.data.DataLoader(torch.randn(48, 4), batch_size=4)
trainer.fit(Model(), data, ckpt_path=slipway_helper.resume_from("*.ckpt"))
print("after")
"""


#: Variables of a rank, in which a library would look for other ranks.
WORLD = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def events(output: str) -> "list[dict]":
    read = [parse_event(line) for line in output.splitlines()]
    assert [issue for _, issue in read if issue] == []
    return [event for event, _ in read if event]


def run(script: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "containers/driver"), **variables}
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, env=environ, capture_output=True, timeout=300)
    # As bytes: universal newlines would make a newline of the return before each line.
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def run_with(packages: "tuple[str, ...]", script: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """The same in a process that finds packages imported, which takes longer than what it does. It is a rank of no world."""
    file = folder / "script.py"
    alone = f"import os\nos.chdir({str(folder)!r})\nfor name in {WORLD}:\n    os.environ.pop(name, None)\n"
    file.write_text(alone + script)
    [code] = run_forked(folder / "process", 1, variables, [], script=str(file), preload=packages)
    said, errors = ((folder / "process" / name).read_bytes().decode() for name in ("0.out", "0.err"))
    return subprocess.CompletedProcess([], code, said, errors)


def test_what_it_prints_is_what_the_driver_reads(tmp_path: Path) -> None:
    script = """
import slipway_helper as s
s.step(3, loss=2.5, mfu=0.4); s.step(4, loss=float("nan"), grad=float("inf")); s.step(5, loss="none")
s.checkpoint(5, "/c/step-5", seconds=1.5); print(s.resume_from(), s.should_stop(), s.HAND_OVER)
"""
    done = run(script, tmp_path)
    assert events(done.stdout) == [
        {"event": "step", "step": 3, "mfu": 0.4, "loss": 2.5},
        {"event": "step", "step": 4},
        {"event": "step", "step": 5},
        {"event": "checkpoint", "step": 5, "uri": "/c/step-5", "seconds": 1.5},
    ], done.stderr
    assert done.stdout.splitlines()[-1] == f"None False {DRIVERS_HAND_OVER}"
    assert events(run(script, tmp_path, RANK="1").stdout) == []


def test_a_bar_with_an_open_line_does_not_hide_what_it_prints(tmp_path: Path) -> None:
    script = 'import sys, slipway_helper as s; sys.stdout.write("Epoch 0: 50%|##  | 1/2 ["); s.step(1)'
    lines = Lines()
    assert [text for text, _ in lines.feed(run(script, tmp_path).stdout.encode())][-1] == 'slipway {"event":"step","step":1}'


def test_the_newest_file_of_a_folder_is_that_of_the_highest_step(tmp_path: Path) -> None:
    for name in ("epoch=9-step=20.ckpt", "epoch=10-step=30-v1.ckpt", "epoch=12-step=9.ckpt", "last.ckpt", "step=99.txt"):
        (tmp_path / name).touch()
    ask = 'import slipway_helper as s; print(s.resume_from("*.ckpt"), s.resume_from("*.pt"), s.resume_from())'
    wanted = f"{tmp_path}/epoch=10-step=30-v1.ckpt None {tmp_path}\n"
    assert run(ask, tmp_path, SLIPWAY_RESUME_FROM=str(tmp_path)).stdout == wanted


def test_it_stops_at_the_deadline_on_request_and_on_sigterm(tmp_path: Path) -> None:
    ask = "import slipway_helper as s; print(s.should_stop())"
    assert run(ask, tmp_path, SLIPWAY_DEADLINE=str(int(time.time()) + 600)).stdout == "False\n"
    assert run(ask, tmp_path, SLIPWAY_DEADLINE=str(int(time.time()) - 1)).stdout == "True\n"
    assert run(ask, tmp_path, SLIPWAY_HAND_OVER_FILE=str(tmp_path / "none")).stdout == "False\n"
    assert run(ask, tmp_path, SLIPWAY_HAND_OVER_FILE=str(tmp_path)).stdout == "True\n"
    listens = """
import os, signal, slipway_helper as s
signal.signal(signal.SIGTERM, lambda *_: print("theirs"))
s.should_stop(); s.should_stop(); os.kill(os.getpid(), signal.SIGTERM); print(s.should_stop())
"""
    assert run(listens, tmp_path).stdout == "theirs\nTrue\n"


@pytest.mark.parametrize(
    ("packages", "script", "place"),
    [
        (("transformers.trainer", "transformers.models.llama.modeling_llama"), TRAINER, "out/checkpoint-{}"),
        (("lightning",), LIGHTNING, "out"),
    ],
    ids=["transformers", "lightning"],
)
def test_a_callback_reports_saves_and_leaves_when_the_run_must_stop(
    tmp_path: Path, packages: "tuple[str, ...]", script: str, place: str
) -> None:
    package = packages[0].partition(".")[0]
    pytest.importorskip(package)
    stopped = run_with(packages, script, tmp_path, SLIPWAY_DEADLINE="1")
    assert stopped.returncode == 76, stopped.stderr[-2000:]
    assert "after" not in stopped.stdout
    steps = [event for event in events(stopped.stdout) if event["event"] == "step"]
    assert [event["step"] for event in steps if "loss" not in event or package == "lightning"] == list(range(1, 11))
    assert [event["step"] for event in events(stopped.stdout) if event["event"] == "checkpoint"][-1] == 10
    done = run_with(packages, script, tmp_path, SLIPWAY_RESUME_FROM=str(tmp_path / place.format(10)))
    assert done.returncode == 0, done.stderr[-2000:]
    steps = [event for event in events(done.stdout) if event["event"] == "step"]
    assert (steps[0]["step"], steps[-1]["step"]) == (11, 24)
    assert any("loss" in event for event in steps)
    assert "after" in done.stdout
