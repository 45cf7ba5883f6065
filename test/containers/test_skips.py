"""Going back to an earlier checkpoint and leaving a window of the data out."""

import json
from pathlib import Path

import pytest

from fake_world import direct_checkpoints
from rank_world import run_ranks, trainer_job, write_shards

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer.checkpoint.committed import MARKER, Rollback, forget_newer, newest_complete, write_marker  # noqa: E402
from slipway_trainer.checkpoint.store import FolderStore  # noqa: E402
from slipway_trainer.order import Skip, batch_of, batches_behind, read_skips  # noqa: E402

SKIPS = (Skip(step=8, batches=5), Skip(step=20, batches=3))


def test_every_batch_outside_the_windows_is_trained_once_and_in_order() -> None:
    trained = [batch_of(SKIPS, step) for step in range(30)]
    left_out = set(range(8, 13)) | set(range(25, 28))
    assert trained == [batch for batch in range(38) if batch not in left_out]


def test_a_checkpoint_written_before_its_window_is_where_it_always_was() -> None:
    assert batches_behind(SKIPS, 8) == 8
    assert batches_behind(SKIPS, 9) == batch_of(SKIPS, 8) + 1 == 14
    assert batches_behind((), 100) == 100


def test_wrong_windows_are_named() -> None:
    issues: list[str] = []
    assert read_skips([{"step": 4, "batches": 2}, {"step": 4, "batches": 0}], issues) == (Skip(4, 2),)
    assert len(issues) == 1


def test_markers_of_earlier_attempts_beyond_the_step_go_and_later_ones_stay(tmp_path: Path) -> None:
    store = FolderStore(str(tmp_path))
    for step, attempt in ((4, 1), (8, 1), (12, 2)):
        write_marker(store, f"step-{step}", {"schema": 1, "step": step, "attempt": attempt, "objects": []})
    assert forget_newer(store, Rollback(to_step=4, before_attempt=2)) == ["step-8"]
    assert forget_newer(store, Rollback(to_step=4, before_attempt=2)) == [], "once is enough"
    assert (tmp_path / "step-12" / MARKER).exists()
    newest, _ = newest_complete(store)
    assert newest is not None and newest.step == 12


def test_the_trainer_goes_back_leaves_the_window_out_and_remembers_where_it_is(tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "shards")
    saved = tmp_path / "saved"
    checkpoints = direct_checkpoints(saved, keep=9)
    arguments = ["--save-every-steps", "2", "--host-check-seconds", "0.01"]
    first = trainer_job(checkpoints=checkpoints, arguments=arguments, training={"steps": 6})
    assert run_ranks(tmp_path / "first", 1, first, {"train": shards})[0] == 0
    # The control plane found step 6 bad: back to step 2, on with the batch behind the sixth.
    order = {"rollback": {"toStep": 2, "beforeAttempt": 2}, "resumeFrom": str(saved / "step-2")}
    window = {"steps": 8, "skips": [{"step": 2, "batches": 4}]}
    second = trainer_job(checkpoints=checkpoints | order, arguments=arguments, training=window, attempt=2)
    code, output = run_ranks(tmp_path / "second", 1, second, {"train": shards})
    assert code == 0, output
    assert "rolled back to step 2: step-6 no longer counts" in output
    assert '"event":"resume","step":2' in output
    record = json.loads((saved / "step-8" / MARKER).read_text())
    assert record["data"]["nextSample"] == (8 + 4) * 4
    # Another attempt under the same order goes on from the second one's checkpoint, which it is told.
    order["resumeFrom"] = str(saved / "step-8")
    third = trainer_job(checkpoints=checkpoints | order, arguments=arguments, training=window | {"steps": 9}, attempt=3)
    code, output = run_ranks(tmp_path / "third", 1, third, {"train": shards})
    assert (code, '"event":"resume","step":8' in output) == (0, True), output
