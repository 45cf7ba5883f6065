"""Situations that people report of their trainers (test/public/trainers.md): what the driver makes of such output and such folders."""

import os
import random
from pathlib import Path

import pytest

from slipway_driver.error_collector import ErrorCollector
from slipway_driver.newest_checkpoint import newest_checkpoint, newest_marker, resume_words, step_in
from slipway_driver.output_lines import Lines
from slipway_driver.progress import FoundSteps, ProgressReader, parse_event
from slipway_driver.progress_formats import FormatReader
from slipway_driver.tables import TRAINER_CHECKPOINTS

SEED = int(os.environ.get("SLIPWAY_TEST_SEED", random.randrange(1 << 30)))


def steps(output: str, name: str) -> "list[dict]":
    reader, lines = FormatReader(name), Lines()
    read = [reader.read("", line) for line, _ in [*lines.feed(output.encode()), (lines.rest, "")]]
    return [event for event in read if event]


def test_a_bar_of_lightning_with_its_loss_between_other_values() -> None:
    bar = "\rEpoch 2:  93%|#########3| {}/20 [5:43:21<25:20,  0.90it/s, v_num=0txx, train_loss=3.{}, denoise_60%_expr=1.290]"
    found = steps("".join(bar.format(step, step) for step in (18, 19)), "auto")
    assert [(event["step"], event["loss"]) for event in found] == [(58, 3.18), (59, 3.19)]


def pairs(lines: "list[str]", reader: ProgressReader) -> "list[tuple[int, float | None]]":
    found = FoundSteps(True)
    said = [each for line in lines if (event := reader.read(line)) for each in found.feed(line, event)]
    events = [parse_event(line)[0] or {} for line in [*said, *found.end()]]
    return [(event["step"], event.get("loss")) for event in events]


def test_lines_that_torchrun_labels_for_each_rank_are_read() -> None:
    # rwth-i6/i6_core#658
    bar, loss = "[rank 0] [default0]: 10%|#   | {}/40 [00:01<00:03, 1.0it/s]", "[rank 0] [default0]:{{'loss': {}, 'epoch': 0.1}}"
    lines = [bar.format(3), bar.format(4), "[rank 0] [default0]:            ", loss.format(2.5), bar.format(4), bar.format(5),
             bar.format(6), bar.format(7), bar.format(8), "[rank 0] [default0]:            ", loss.format(2.25), bar.format(8)]  # fmt: skip
    assert pairs(lines, ProgressReader(None, None)) == [(4, 2.5), (5, None), (6, None), (7, None), (8, 2.25)]


def test_of_ranks_that_mpirun_labels_one_counts_although_two_lines_run_together() -> None:
    # spellml/examples#17
    line = "[1,{}]<stdout>:Train Epoch: 10 [{}/30000 (26%)]\tLoss: 0.{}"
    lines = [line.format(rank, step, step + rank) for step in (640, 1280, 1920) for rank in (1, 0)]
    lines[2:4] = [lines[2] + lines[3]]
    reader = ProgressReader(r"Train Epoch: \d+ \[(\d+)/", r"Loss: ([\d.]+)")
    assert [step for step, _ in pairs(lines, reader)] == [640, 1280, 1920]


def test_a_bar_of_another_loop_with_an_epoch_and_losses_is_read() -> None:
    # geoelements/gns#79
    bar = "Epoch {}: 50%|##### | {}/4 [03:44<00:00,  4.42batch/s, avg_loss=0.34, loss=0.{}, lr=1.00e-04]"
    lines = [bar.format(epoch, step, step) for epoch in (0, 1) for step in (1, 2, 3, 4)] + [
        "Training: 100%|####| 2/2 [07:43<00:00, 231.64s/epoch]"
    ]
    assert pairs(lines, ProgressReader(None, None)) == [(4 * epoch + step, step / 10) for epoch in (0, 1) for step in (1, 2, 3, 4)]


def test_steps_that_restart_from_one_in_a_bar_are_those_that_verl_prints() -> None:
    # hiyouga/EasyR1#319
    lines = ["Running step:  3%|# | 3/100 [00:10<01:30, 1.0it/s]", "(Runner pid=7) step:99 - actor/pg_loss:0.25 - critic/score:1.0"]
    assert pairs(lines, ProgressReader(None, None)) == [(99, 0.25)]


def test_a_bar_whose_length_is_cut_by_a_resume_shows_that_the_run_works() -> None:
    # huggingface/diffusers#5005, kohya-ss/sd-scripts#1354
    for bar in (
        "Steps:  50%|##### | {}/500 [00:10<00:20, 1.2it/s, step_loss=0.1]",
        "steps:  18%|# | {}/1920 [1:37:28<7:37:50, avr_loss=0.2]",
    ):
        reader = ProgressReader(None, None)
        assert [(reader.read(bar.format(count)) or {}).get("event") for count in (250, 250, 251)] == ["bar", None, "bar"]


def test_a_bar_of_lightning_without_a_length_shows_that_the_run_works() -> None:
    bar = "Epoch 2: : {}it [1:05:34,  4.49it/s, loss=2.15, v_num=3hqp]"
    reader = FormatReader("lightning")
    assert [reader.read("", bar.format(count)) for count in (17671, 17671, 17672)] == [{"event": "bar"}, None, {"event": "bar"}]


def test_a_bar_with_a_name_in_front_and_losses_as_json_are_those_of_the_trainer() -> None:
    # modelscope/ms-swift#4366 and #9261; the last bar is that of an evaluation.
    bar, loss = "Train:  33%|###   | {}/9297 [7:04:32<12:19:18,  7.16s/it]", "{{{0}loss{0}: {1}, {0}grad_norm{0}: 0.6, {0}epoch{0}: 0.1}}"
    for quote in ("'", '"'):
        lines = [bar.format(9), loss.format(quote, 1.5), bar.format(10), bar.format(11), "Val:  10%|#  | 12/9297 [00:01<00:09,  1.0it/s]"]
        assert pairs([*lines, bar.format(12) + "[INFO:swift] saved"], ProgressReader(None, None)) == [(10, 1.5), (11, None), (12, None)]


@pytest.mark.parametrize("group", [r"[\d.]+", r"[-+\d.]+", r"\S+", r"[-+\d.eE]+"])
def test_law_a_loss_is_the_whole_number_where_its_group_begins(group: str) -> None:
    # tenstorrent/tt-metal#37531
    rng = random.Random(SEED)
    for _ in range(200):
        value = rng.uniform(0, 10) * 10.0 ** rng.randint(-9, 9)
        written = rng.choice(["{}", "{:e}", "{:.3g}", "{:.2f}", "{:.0f}", "{:E}"]).format(value)
        line = f"Step: 3, Loss: {written}{rng.choice(['', ', Time: 703.14 ms', '.', ';', ' (81.7)'])}"
        assert ProgressReader(r"Step: (\d+)", f"Loss: ({group})").read(line) == {"event": "step", "step": 3, "loss": float(written)}, line


@pytest.mark.parametrize(
    ("report", "line", "step", "loss"),
    [
        ("TorchDR/TorchDR#317", "[rank {0}] [{1}/1000] loss: 0.{1}", r"\[(\d+)/1000\]", r"loss: (\S+)"),
        (
            "open-mmlab/OpenPCDet#1229",
            "Train: 1/3 ( 33%) [ 49/323 ( 15%)]  Loss: 0.{1} (81.7)  Acc_iter {1}",
            r"Acc_iter (\d+)",
            r"Loss: (\S+)",
        ),
    ],
)
def test_loops_of_their_own_are_read_with_expressions(report: str, line: str, step: str, loss: str) -> None:
    lines = [line.format(rank, number) for number in (1, 2, 3) for rank in (1, 0)]
    assert pairs(lines, ProgressReader(step, loss)) == [(1, 0.1), (2, 0.2), (3, 0.3)], report


def test_the_bar_of_an_older_lightning_is_read() -> None:
    # official-stockfish/nnue-pytorch#83
    bar = "Epoch 1:  39%|###   | {}/12331 [05:59<09:15, 13.47it/s, loss=0.01{}, v_num=1]"
    assert pairs([bar.format(n, n) for n in (5, 6)], ProgressReader(None, None)) == [(12336, 0.015), (12337, 0.016)]


def test_a_group_that_is_no_number_is_no_loss() -> None:
    reader = ProgressReader(None, r"loss[:=] ?(\S+)")
    for line in ("loss: information", "loss=0.5s", "loss=1,234.5", "loss: --", "loss=1.2.3"):
        assert reader.read(line) is None, line
    assert reader.read("loss=-Inf") == {"event": "metric", "loss": float("-inf")}


def test_the_loss_of_a_pipeline_is_that_of_its_last_stage() -> None:
    line = "[titan] - root - INFO - step: {:2}  loss: {:8.5f}  grad_norm:  1.0"
    reader, found = ProgressReader(None, None, "auto"), FoundSteps(expects_loss=True)
    said = []
    for rank, step, loss in ((0, 1, -1.0), (7, 1, 8.25), (0, 2, -1.0), (7, 2, 7.5)):
        label = f"[rank {rank}] {line.format(step, loss)}"
        event = reader.read(label)
        said += found.feed(label, event) if event else []
    assert [parse_event(each)[0] for each in said] == [
        {"event": "step", "step": 1, "loss": 8.25}, {"event": "step", "step": 2, "loss": 7.5},
    ]  # fmt: skip


def test_the_checkpoint_of_transformers_counts_by_its_own_step_and_not_by_that_of_deepspeed_in_it(tmp_path: Path) -> None:
    for path in ("checkpoint-1200/trainer_state.json", "checkpoint-1200/global_step1192/bf16_zero_pp_rank_0.pt", "checkpoint-1200/latest"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("global_step1192", encoding="utf-8")
    marker = TRAINER_CHECKPOINTS["transformers"].marker
    assert newest_checkpoint(str(tmp_path), marker=marker) == str(tmp_path / "checkpoint-1200")
    assert step_in("checkpoint-1200/trainer_state.json") == 1200


def test_the_folders_that_lightning_makes_itself_are_found_by_a_marker_of_the_run_file(tmp_path: Path) -> None:
    folder = "lightning_logs/version_{}/checkpoints"
    for version, name in ((0, "epoch=0-step=2048-val_loss=0.415.ckpt"), (3, "epoch=1-step=4096-val_loss=0.397.ckpt")):
        place = tmp_path / folder.format(version)
        place.mkdir(parents=True)
        (place / name).write_text("x", encoding="utf-8")
    newest = newest_checkpoint(str(tmp_path), marker=folder.format("*") + "/*.ckpt")
    assert newest == str(tmp_path / folder.format(3))
    (tmp_path / "train.py").write_text('parser.add_argument("--ckpt_path")', encoding="utf-8")
    words = resume_words("lightning", "train.py", (), tmp_path, newest)
    assert words == [f"--ckpt_path={newest}/epoch=1-step=4096-val_loss=0.397.ckpt"]


@pytest.mark.parametrize(
    ("report", "marker", "name"),
    [
        ("mosaicml/composer#2146", "ep*-ba*/done", "ep{}-ba{}/done"),
        ("zylo117/Yet-Another-EfficientDet-Pytorch#686", "d0_*_*/done", "d0_{}_{}/done"),
        ("modelscope/ms-swift#4366", "v*/checkpoint-*/trainer_state.json", "v0-20250526-16270{}/checkpoint-{}/trainer_state.json"),
        ("metatensor/metatrain#720", "epoch_*_step_*/done", "epoch_{}_step_{}/done"),
    ],
)
def test_law_the_newest_of_names_with_several_numbers_has_the_highest_step(report: str, marker: str, name: str) -> None:
    # The files of a folder that was copied have other times, which do not count.
    rng = random.Random(SEED)
    for _ in range(50):
        steps_of_run = sorted(rng.sample(range(1, 100_000), 6))
        names = [name.format(number // 2, step) for number, step in enumerate(steps_of_run)]
        assert newest_marker(rng.sample(names, len(names)), marker) == names[-1], (report, SEED)


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
