"""Data is read ahead by threads, in the same order and with the same errors as without them."""

import threading
from pathlib import Path

import pytest

from rank_world import trainer_job, write_shards

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer.batches import (  # noqa: E402
    DEPTH,
    Batches,
    Prefetch,
)
from slipway_trainer.exits import DataFailed  # noqa: E402
from slipway_trainer.settings import resolve_settings  # noqa: E402

CPU = torch.device("cpu")


def batches_of(folder: Path) -> Batches:
    job = trainer_job(training={"globalBatchSize": 8, "microBatchSize": 2})
    return Batches(folder, resolve_settings(job, job["arguments"], {}).training, 257, rank=0, ranks=2)


def test_read_ahead_gives_what_reading_at_once_gives(shards: Path) -> None:
    plain, ahead = batches_of(shards), Prefetch(batches_of(shards), pinned=False)
    # Several epochs, and a window that is left out.
    order = [*range(120), *range(130, 150), 3]
    for batch in order:
        for micro_step in range(plain.micro_steps):
            found, expected = ahead.micro_batch(batch, micro_step, CPU), plain.micro_batch(batch, micro_step, CPU)
            for ours, theirs in zip(found[:2], expected[:2], strict=True):
                assert torch.equal(ours, theirs), (batch, micro_step)
    ahead.close()


def test_what_comes_next_is_on_its_way_before_it_is_asked_for(shards: Path) -> None:
    batches = batches_of(shards)
    read, whole = [], threading.Event()
    inner = batches.rows

    def rows(numbers: list[int]) -> torch.Tensor:
        read.append(tuple(numbers))
        if len(read) == DEPTH + 1:
            whole.set()
        assert threading.current_thread() is not threading.main_thread()
        return inner(numbers)

    batches.rows = rows  # type: ignore[method-assign]
    ahead = Prefetch(batches, pinned=False)
    ahead.micro_batch(0, 0, CPU)
    assert whole.wait(10)
    expected = [tuple(batches.numbers(batch, micro_step)) for batch in range(6) for micro_step in range(2)]
    assert sorted(read) == sorted(expected[: DEPTH + 1])
    ahead.close()


def test_fails_with_the_data_error_where_it_is_used(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "train")
    batches = batches_of(folder)
    for shard in folder.glob("*.bin"):
        shard.write_bytes(shard.read_bytes()[:100])
    ahead = Prefetch(batches, pinned=False)
    with pytest.raises(DataFailed, match="ends .* bytes too early"):
        ahead.micro_batch(0, 0, CPU)
    ahead.close()
