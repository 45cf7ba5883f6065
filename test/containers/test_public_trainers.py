"""Situations that people report of their trainers (test/public/trainers.md): what the driver makes of such output and such folders."""

from pathlib import Path

from slipway_driver.error_collector import ErrorCollector
from slipway_driver.newest_checkpoint import newest_checkpoint
from slipway_driver.output_lines import Lines
from slipway_driver.progress_formats import FormatReader
from slipway_driver.tables import TRAINER_CHECKPOINTS


def steps(output: str, name: str) -> "list[dict]":
    reader, lines = FormatReader(name), Lines()
    read = [reader.read("", line) for line, _ in [*lines.feed(output.encode()), (lines.rest, "")]]
    return [event for event in read if event]


def test_a_bar_of_lightning_with_its_loss_between_other_values() -> None:
    bar = "\rEpoch 2:  93%|#########3| {}/20 [5:43:21<25:20,  0.90it/s, v_num=0txx, train_loss=3.{}, denoise_60%_expr=1.290]"
    found = steps("".join(bar.format(step, step) for step in (18, 19)), "auto")
    assert [(event["step"], event["loss"]) for event in found] == [(58, 3.18), (59, 3.19)]


def test_a_traceback_behind_a_bar_on_the_same_line_is_the_error() -> None:
    output = [
        "{'loss': 1.2749, 'learning_rate': 0.0001, 'epoch': 0.05}",
        "  1%|4         | 272/22292 [03:40<4:26:46,  1.38it/s]Traceback (most recent call last):",
        '  File "train.py", line 8, in <module>',
        "ValueError: the batch has no labels",
    ]
    assert steps("\n".join(output), "auto")[-1]["step"] == 272
    errors = ErrorCollector()
    for at, line in enumerate(output):
        errors.feed(line, float(at))
    assert "the batch has no labels" in errors.summary


def test_a_checkpoint_that_a_kill_left_half_written_is_passed_over(tmp_path: Path) -> None:
    for name, complete, torn in (
        ("transformers", "checkpoint-20/trainer_state.json", "checkpoint-30/model.safetensors"),
        ("torchtitan", "checkpoint/step-20/.metadata", "checkpoint/step-30/__0_0.distcp"),
        ("verl", "global_step_20/data.pt", "global_step_30/actor/model.pt"),
    ):
        for path in (tmp_path / name / complete, tmp_path / name / torn):
            path.parent.mkdir(parents=True)
            path.write_text("x", encoding="utf-8")
        found = newest_checkpoint(str(tmp_path / name), marker=TRAINER_CHECKPOINTS[name].marker)
        assert found == str((tmp_path / name / complete).parent)
