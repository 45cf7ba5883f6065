"""The argument with which a trainer goes on: only for programs that take it, only for a checkpoint that this host has."""

import json
import os
import random
import re
from pathlib import Path

import pytest

from slipway_driver.newest_checkpoint import newest_checkpoint, newest_marker, resume_words, step_in
from slipway_driver.tables import PROGRESS_FORMATS, TRAINER_CHECKPOINTS

HUGGING_FACE = "from trl import TrlParser\ntrainer.train(resume_from_checkpoint=training_args.resume_from_checkpoint)\n"
NEWER = 'resume = get_last_checkpoint(folder)\nparser.add_argument("--lr")\ntrainer.train(resume_from_checkpoint=resume)\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("checkpoint-20/trainer_state.json", "iter_0000020/metadata.json", "global_step_20/data.pt", "epoch=9-step=20.ckpt",
                 "epoch=1-step=8.ckpt", "checkpoint-30/model.safetensors"):  # fmt: skip
        path = tmp_path / "checkpoints" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    return tmp_path


def words(place: Path, trainer: str, checkpoint: str, script: str, name: str = "train.py", given: "tuple[str, ...]" = ()) -> "list[str]":
    (place / name).write_text(script, encoding="utf-8")
    uri = str(place / "checkpoints" / checkpoint) if "s3:" not in checkpoint else checkpoint
    found = resume_words(trainer, name, given, place, uri.rstrip("/"))
    return [word.replace(str(place / "checkpoints"), "C") for word in found]


@pytest.mark.parametrize(
    ("trainer", "checkpoint", "script", "name", "wanted"),
    [
        ("transformers", "checkpoint-20", HUGGING_FACE, "train.py", ["--resume_from_checkpoint", "C/checkpoint-20"]),
        ("transformers", "checkpoint-20", "p.add_argument('--resume_from_checkpoint')", "t.py",
         ["--resume_from_checkpoint", "C/checkpoint-20"]),
        ("axolotl", "checkpoint-20", 'axolotl train c.yaml "$@"', "t.sh", ["--resume-from-checkpoint", "C/checkpoint-20"]),
        ("llama-factory", "checkpoint-20", 'llamafactory-cli train c.yaml "$@"', "t.sh", ["resume_from_checkpoint=C/checkpoint-20"]),
        ("lightning", "", "LightningCLI(Model)", "train.py", ["--ckpt_path=C/epoch=9-step=20.ckpt"]),
        ("megatron", "iter_0000020", "from megatron.training import pretrain", "train.py", ["--load", "C"]),
        ("verl", "global_step_20", 'python3 -m verl.trainer.main_ppo "$@"', "t.sh",
         ["trainer.resume_mode=resume_path", "trainer.resume_from_path=C/global_step_20"]),
    ],
)  # fmt: skip
def test_a_program_that_takes_the_argument_gets_it(
    place: Path, trainer: str, checkpoint: str, script: str, name: str, wanted: "list[str]"
) -> None:
    assert words(place, trainer, checkpoint, script, name) == wanted
    # A run file that passes one decides.
    given = wanted[0].partition("=")[0]
    assert words(place, trainer, checkpoint, script, name, (given,)) == []
    assert words(place, trainer, checkpoint, script, name, (f"{given}=other",)) == []
    assert words(place, trainer, checkpoint, "print('hello')", name) == []


def test_no_program_gets_an_argument_that_it_may_not_know(place: Path) -> None:
    assert words(place, "transformers", "checkpoint-20", NEWER) == []
    # trl 0.23.0: its parser knows the argument, and its script does not read it.
    assert words(place, "transformers", "checkpoint-20", "from trl import TrlParser\ntrainer.train()\n") == []
    assert words(place, "llama-factory", "checkpoint-20", "llamafactory-cli train c.yaml", "t.sh") == []
    assert words(place, "torchtitan", "checkpoint-20", HUGGING_FACE) == []
    for checkpoint in ("s3://bucket/checkpoint-20", "checkpoint-30", "checkpoint-40"):
        assert words(place, "transformers", checkpoint, HUGGING_FACE) == []
    for trainer in ("auto", "none", "nemo"):
        assert words(place, trainer, "checkpoint-20", HUGGING_FACE) == []


def test_a_shell_script_counts_with_the_script_that_it_starts(place: Path) -> None:
    (place / "sft.py").write_text(HUGGING_FACE, encoding="utf-8")
    wanted = ["--resume_from_checkpoint", "C/checkpoint-20"]
    assert words(place, "transformers", "checkpoint-20", 'accelerate launch \\\n  sft.py "$@"\n', "train.sh") == wanted
    assert words(place, "transformers", "checkpoint-20", "accelerate launch sft.py --lr 1\n", "train.sh") == []


def test_a_module_counts_wherever_it_is_installed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("trl", "1.0")
    checkpoint = str(place / "checkpoints/checkpoint-20")
    assert resume_words("transformers", "trl.scripts.sft", (), place, checkpoint) == ["--resume_from_checkpoint", checkpoint]
    for module in ("json.tool", "nothing.like.this", "train"):
        assert resume_words("transformers", module, (), place, checkpoint) == []
        why = f"{module} shows no sign that it takes --resume_from_checkpoint, so it must read SLIPWAY_RESUME_FROM itself"
        assert capsys.readouterr().out.endswith(why + "\n")
    (place / "train.py").write_text('run_module("trl.scripts.sft", run_name="__main__")\n', encoding="utf-8")
    assert resume_words("transformers", "train.py", (), place, checkpoint) == ["--resume_from_checkpoint", checkpoint]
    (place / "train.sh").write_text('exec accelerate launch \\\n  -m trl.scripts.dpo "$@"\n', encoding="utf-8")
    assert resume_words("transformers", "train.sh", (), place, checkpoint) == ["--resume_from_checkpoint", checkpoint]


def test_the_newest_checkpoint_of_a_trainer_is_the_newest_that_is_complete(place: Path) -> None:
    folder = str(place / "checkpoints")
    newest = {name: newest_checkpoint(folder, marker=facts.marker) for name, facts in TRAINER_CHECKPOINTS.items()}
    assert newest["transformers"] == f"{folder}/checkpoint-20"
    assert newest["lightning"] == folder
    assert newest["torchtitan"] == ""
    assert set(TRAINER_CHECKPOINTS) < set(PROGRESS_FORMATS)


@pytest.mark.parametrize("draw", range(50))
def test_the_newest_marker_has_the_highest_step_of_those_that_match(draw: int) -> None:
    dice = random.Random(f"{os.environ['SLIPWAY_TEST_SEED']} {draw}")
    marker = dice.choice(["checkpoint-*/x", "*.ckpt", "c/step-*/.m", "a*b*"])
    steps = [dice.randrange(10**4) for _ in range(8)]
    names = [marker.replace("*", dice.choice([f"epoch=7-step={step}", f"step_{step}"]), 1).replace("*", "z") for step in steps]
    others = [f"deep/{name}" for name in names] + [name + "~" for name in names if not marker.endswith("*")]
    found = newest_marker(dice.sample(names + others, len(names + others)), marker)
    assert found in names
    assert re.search(rf"step.{max(steps)}\D*\Z", found), json.dumps([marker, names])
    assert step_in(found) == max(steps)
