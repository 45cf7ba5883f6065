"""Steps and losses of trainers that people use: recorded output of their packages (fixtures/progress), and lines that people quote."""

import os
import random
from pathlib import Path

import pytest

from slipway_driver.output_lines import Lines
from slipway_driver.progress import FoundSteps, ProgressReader
from slipway_driver.progress_formats import FormatReader
from slipway_driver.tables import PROGRESS_FORMATS

RECORDED = Path(__file__).parent / "fixtures/progress"


def found_in(output: bytes, name: str = "auto") -> "tuple[str, list[str]]":
    """The format, and the progress lines that the driver prints of an output."""
    reader, steps = ProgressReader(None, None, name), FoundSteps(expects_loss=True)
    said = []
    lines = Lines()
    for line, _kind in [*lines.feed(output), (lines.rest, "")]:
        event = reader.read(line)
        said += steps.feed(line, event) if event else []
    return reader.format, [line.removeprefix('slipway {"event":"step",').removesuffix("}") for line in [*said, *steps.end()]]


@pytest.mark.parametrize("version", ["4.57", "5.23"])
def test_the_trainer_of_transformers_shows_its_steps_and_the_losses_that_it_logs(version: str) -> None:
    name, said = found_in((RECORDED / f"transformers-{version}.log").read_bytes())
    steps = [line.split(",")[0] for line in said]
    assert (name, len(steps)) == ("transformers", len(set(steps)))
    assert steps == sorted(steps, key=lambda step: int(step.split(":")[1]))
    assert steps[-1] == '"step":24'
    logged = [int(step.split(":")[1]) for step, line in zip(steps, said, strict=True) if "loss" in line]
    assert logged == [4, 8, 12, 16, 20, 24]


def test_lightning_counts_over_epochs() -> None:
    name, said = found_in((RECORDED / "lightning-2.6.log").read_bytes())
    steps = [int(line.split(",")[0].split(":")[1]) for line in said]
    assert name == "lightning"
    assert steps == sorted(set(steps))
    assert {1, 8, 9, 16} <= set(steps)
    assert all(f'"step":{step},"loss":' in line for step, line in zip(steps[1:-1], said[1:-1], strict=True))


def test_the_bar_that_lightning_draws_with_rich_has_steps_and_losses() -> None:
    name, said = found_in((RECORDED / "lightning-rich-2.6.log").read_bytes())
    steps = [int(line.split(",")[0].split(":")[1]) for line in said]
    assert (name, steps) == ("lightning", list(range(1, 17)))
    assert all(f'"step":{step},"loss":0.' in line for step, line in zip(steps, said, strict=True))


def test_the_last_epoch_of_lightning_is_shorter_where_steps_are_limited() -> None:
    bar = "Epoch {}: 50%|#####     | {}/{} [00:01<00:01,  3.23it/s, train_loss=0.5]"
    epochs = ((0, 32, (30, 31, 32)), (1, 8, (1, 8)))
    found = found_in("\n".join(bar.format(epoch, step, total) for epoch, total, steps in epochs for step in steps).encode())
    assert found == ("lightning", [f'"step":{step},"loss":0.5' for step in (30, 31, 32, 33, 40)])


@pytest.mark.parametrize(
    "bar", ["Epoch 1:   0%|          | 0/10 [00:00<?, ?it/s]", "Epoch 1/2  ━━━━━━━━━━━━━━━━━━━━ 0/10 0:00:00 • -:--:--  "]
)
def test_lightning_that_goes_on_at_the_end_of_an_epoch_begins_with_the_step_after_it(bar: str) -> None:
    """Recorded with lightning 2.6.0: ten steps an epoch, from the checkpoint that was saved at the end of the first."""
    reader = FormatReader("lightning")
    lines = ["Training: |          | 0/? [00:00<?, ?it/s]", bar, bar.replace(" 0/10", " 1/10")]
    assert [event["step"] for event in map(lambda line: reader.read("0", line), lines) if event and event["event"] == "step"] == [11]


def test_steps_of_lightning_after_a_resume_within_an_epoch_are_those_of_the_run() -> None:
    # lightning 2.6.0, resumed at step 20 of 32 in an epoch, with max_steps=40.
    lines = [f"Training: |          | {step}/? [00:01<00:00, 8.51it/s, train_loss=0.5]" for step in (24, 28, 32, 0)]
    lines += [f"Epoch 1:  50%|#####     | {step}/8 [00:01<00:01,  3.24it/s, train_loss=0.25]" for step in (1, 4, 8)]
    assert found_in("\n".join(lines).encode(), "lightning") == ("lightning", [f'"step":{step},"loss":0.25' for step in (33, 36, 40)])


QUOTED = {
    "torchtitan": (
        "[rank0]:[titan] 2026-05-18 16:04:46,338 - root - INFO - step: 14  loss:  3.24405  grad_norm:  0.8319  memory:  9.46GiB(64.99%)",
        '"step":14,"loss":3.24405',
    ),
    "megatron": (
        " iteration      122/  250000 | consumed samples:       124928"
        " | global batch size:  1024 | lm loss: 2.504220E+00 | loss scale: 1.0 | grad norm: 0.231 |",
        '"step":122,"loss":2.50422',
    ),
    "nemo": (
        "Training epoch 0, iteration 4/9 | lr: 0.0006 | global_batch_size: 32 | global_step: 4 | reduced_train_loss: 8.675",
        '"step":4,"loss":8.675',
    ),
    "verl": (
        "(TaskRunner pid=4072644) step:4 - global_seqlen/min:210047.000 - actor/pg_loss:0.010 - actor/pg_clipfrac:0.001",
        '"step":4,"loss":0.01',
    ),
    "deepspeed": (
        "[2022-03-11 02:06:58,985] [INFO] [logging.py:69:log_dist] [Rank 0] step=40, skipped=2, lr=[5e-05], mom=[[0.9, 0.999]]",
        '"step":40',
    ),
}


def test_megatron_prints_the_time_first_and_no_loss_for_a_skipped_iteration() -> None:
    # megatron-bridge 0.3.1, training/utils/train_utils.py, as in Megatron-LM since 2024.
    start = " [2026-11-27 18:40:00] iteration {:8d}/     100 | consumed samples:          64 | elapsed time per iteration (ms): 941.2 |"
    end = " loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |"
    lines = [start.format(2) + end, start.format(3) + " lm loss: 1.079210E+01 |" + end, start.format(4) + " lm loss: 9.5E+00 |" + end]
    for asked in ("auto", "megatron"):
        assert found_in("\n".join(lines).encode(), asked) == ("megatron", ['"step":2', '"step":3,"loss":10.7921', '"step":4,"loss":9.5'])


def test_a_validation_of_torchtitan_is_no_step() -> None:
    lines = [f"[titan] - root - INFO - {kind}step: {step:2}  loss: {loss}  x" for kind, step, loss in
             (("", 1, 8.5), ("validate ", 5, 3.25), ("", 10, 4.5), ("validate ", 10, 3.5))]  # fmt: skip
    assert found_in("\n".join(lines).encode()) == ("torchtitan", ['"step":1,"loss":8.5', '"step":10,"loss":4.5'])


def bars_in(lines: "list[str]", name: str) -> "list[str]":
    reader, steps = ProgressReader(None, None, name), FoundSteps(expects_loss=True)
    events = [reader.read(line) or {"event": "-"} for line in lines]
    assert [steps.feed("", event) for event in events if event["event"] == "bar"] == [[] for event in events if event["event"] == "bar"]
    return [event["event"] for event in events]


@pytest.mark.parametrize(
    "bar",
    [
        "{:3}%|#         | {}/1000 [00:10<01:30,  1.00s/it]",  # transformers before its first loss, and after a resume
        "Tokenizing (num_proc=8): {:3}%|#    | {}/5000 [00:10<01:30, 900.0 examples/s]",
        "Training: |{:9}| {}/? [00:01<?, 3.00it/s]",  # Lightning after a resume within an epoch
        "Validation ━{:3}━━ {}/64 0:00:00 • -:--:-- 0.00it/s",
    ],
)
@pytest.mark.parametrize("name", ["auto", "transformers", "lightning", "verl"])
def test_a_bar_that_moves_shows_that_a_trainer_works_without_a_step(bar: str, name: str) -> None:
    assert bars_in([bar.format(step, step) for step in (1, 1, 2, 2, 3)], name) == ["bar", "-", "bar", "-", "bar"]
    # Rich draws all its bars ten times a second, whether or not one of them moves.
    still = [bar.format(1, 7), "Epoch 0/1 ━━━ 3/8 0:00:04 • 0:00:10 9.38it/s v_num: 1"] * 5
    assert bars_in(still, name)[2:] == ["-"] * 8


@pytest.mark.parametrize("draw", range(50))
def test_a_bar_as_tqdm_formats_it_is_seen_to_move_when_its_count_changes(draw: int) -> None:
    tqdm = pytest.importorskip("tqdm").tqdm
    dice = random.Random(f"{os.environ['SLIPWAY_TEST_SEED']} {draw}")
    total = dice.choice([None, 10 ** dice.randrange(1, 7)])
    style = {
        "total": total, "prefix": dice.choice(["", "Epoch 2", "Map (num_proc=4)"]), "unit": dice.choice(["it", "B", " examples"]),
        "unit_scale": dice.random() < 0.3, "ncols": dice.choice([None, 80, 200]), "ascii": dice.random() < 0.5,
        "postfix": dice.choice([None, "loss=2.15, v_num=3"]),
    }  # fmt: skip
    counts = sorted(dice.sample(range(1, 10**7 if total is None else total + 1), 8))
    counts = [count for count in counts for _ in range(dice.choice([1, 3]))]
    lines = [tqdm.format_meter(count, elapsed=count + at / 7, **style) for at, count in enumerate(counts)]
    shown = [line.split("[")[0].split("|")[-1].split(":")[-1].strip() for line in lines]
    seen = bars_in(lines, dice.choice(["transformers", "verl"]))
    assert seen == ["bar" if at == 0 or shown[at] != shown[at - 1] else "-" for at in range(len(lines))], lines


def test_the_bar_of_an_evaluation_shows_that_the_trainer_works() -> None:
    lines = [" 10%|# | 10/100 [00:10<01:30]", "{'loss': 2.5, 'epoch': 0.1}", " 10%|# | 10/100 [00:10<01:30]",
             " 50%|## | 20/40 [00:01<00:01]", " 52%|## | 21/40 [00:01<00:01]", " 11%|# | 11/100 [00:11<01:29]"]  # fmt: skip
    assert bars_in(lines, "transformers") == ["bar", "-", "step", "bar", "bar", "step"]


@pytest.mark.parametrize("name", QUOTED)
@pytest.mark.parametrize(
    "label", ["", "[rank 3] ", "[default0]:", "[rank 0] [default7]: ", "[1,0]<stdout>:", "(RayTrainWorker pid=7, ip=10.0.0.7) "]
)
def test_a_line_as_people_quote_it(name: str, label: str) -> None:
    line, event = QUOTED[name]
    for asked in ("auto", name):
        assert found_in(f"{label}{line}\n".encode(), asked) == (name, [event])


def test_a_validation_before_the_first_step_of_verl_is_none() -> None:
    line = "step:0 - val-aux/openai/gsm8k/reward/mean@1:0.565 - val-core/openai/gsm8k/acc/mean@1:0.508"
    assert found_in(line.encode()) == ("", [])


def test_losses_between_lines_of_deepspeed_belong_to_the_trainer() -> None:
    output = "\n".join(
        [
            "{'loss': 6.2645, 'learning_rate': 0.001, 'epoch': 0.02}",
            "  8%|███ | 1999/24128 [1:52:09<20:27:23,  3.33s/it][2021-11-26 03:07:16,494] [INFO] [Rank 0] step=2000,"
            " skipped=1995, lr=[0.001, 0.001], mom=[0.0, 0.0]",
            "{'loss': 0.5, 'learning_rate': 0.001, 'epoch': 0.08}",
            "  8%|███ | 2000/24128 [1:52:12<20:27:23,  3.33s/it]",
        ]
    )
    assert found_in(output.encode()) == ("transformers", ['"step":1999,"loss":6.2645', '"step":2000,"loss":0.5'])


def test_evaluations_and_other_bars_are_no_steps() -> None:
    output = "\n".join(
        [
            "Map: 100%|##########| 32/32 [00:00<00:00, 900.0 examples/s]",
            " 10%|#         | 10/100 [00:10<01:30,  1.00s/it]",
            "{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': 0.1}",
            " 50%|#####     | 20/40 [00:01<00:01, 20.0it/s]",
            "{'eval_loss': 2.4, 'eval_runtime': 2.0, 'epoch': 0.1}",
            " 11%|#         | 11/100 [00:11<01:29,  1.00s/it]",
            "{'train_runtime': 100.0, 'train_loss': 2.1, 'epoch': 1.0}",
        ]
    )
    name, said = found_in(output.encode())
    # The first bar came before it was known whose it is.
    assert (name, said) == ("transformers", ['"step":11,"loss":2.5'])


def test_a_loss_belongs_to_the_bar_below_it_where_the_one_above_was_not_passed_on() -> None:
    loss = "{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': 0.1}"
    bars = [f" 10%|#         | {step}/100 [00:10<01:30,  1.00s/it]" for step in (8, 10, 10, 11)]
    _, said = found_in("\n".join([bars[0], loss, bars[1], loss, bars[2], bars[3]]).encode())
    assert said == ['"step":10,"loss":2.5', '"step":11']


def test_a_step_that_every_rank_prints_without_a_label_is_one_step() -> None:
    lines = [
        f"[titan] - root - INFO - step: {step}  loss:  {loss}  grad_norm: 1.0" for step, loss in ((4, 7.5), (4, 7.5), (5, 7.25), (5, 7.25))
    ]
    assert found_in("\n".join(lines).encode()) == ("torchtitan", ['"step":4,"loss":7.5', '"step":5,"loss":7.25'])


def test_own_expressions_and_progress_lines_come_first() -> None:
    line = "[titan] - INFO - step: 14  loss:  3.2"
    assert ProgressReader(r"INFO - step: (\d)", None).read(line) == {"event": "step", "step": 1}
    assert ProgressReader(None, None, "none").read(line) is None
    told = ProgressReader(None, None)
    assert [told.read(each) for each in ('slipway {"event":"step","step":3}', line)] == [{"event": "step", "step": 3}, None]
    reader, steps = ProgressReader(None, None), FoundSteps(expects_loss=True)
    for said in ('slipway {"event":"step","step":3}', line):
        event = reader.read(said)
        assert (steps.feed(said, event) if event else []) == []


@pytest.mark.parametrize("draw", range(50))
def test_no_output_breaks_the_reader_and_steps_of_a_rank_never_fall(draw: int) -> None:
    dice = random.Random(f"{os.environ['SLIPWAY_TEST_SEED']} {draw}")
    known = [line for line, _ in QUOTED.values()] + [
        "{'loss': nan, 'epoch': 1}",
        "{'loss': '",
        "Epoch 1:  12%|#| 1/8 [00:00",
        " 3%|#| 9/9 [",
    ]
    reader, last = FormatReader("auto"), 0
    for _ in range(60):
        line = dice.choice(known)
        # Cut, joined and disturbed, as several writers leave it.
        line = line[: dice.randrange(len(line) + 1)] + dice.choice(["", "\x00", "\ufffd", "9" * 30, dice.choice(known)])
        event = reader.read("", line)
        if event and event["event"] == "step":
            assert 0 < event["step"] < 10**15
            assert event["step"] > last or (event["step"] == last and "loss" in event)
            last = event["step"]


def test_every_name_of_the_run_file_is_a_format() -> None:
    for name in PROGRESS_FORMATS:
        if name != "none":
            assert FormatReader(name).found == ""
