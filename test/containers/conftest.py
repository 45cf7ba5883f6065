"""One thread for PyTorch, and what the tests of the trainer share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before any test imports PyTorch: the models are tiny, and threads that wait for each other burn the machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from forked import end_waiting_ranks
from plain_loop import plain_losses
from rank_world import TRAINING, write_shards

#: Takes longest: whichever process begins it last would finish alone.
FIRST = "test_train_and_resume.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order in which xdist hands out files under --no-loadscope-reorder."""
    items.sort(key=lambda item: item.path.name != FIRST)


@pytest.fixture(scope="module", autouse=True)
def ranks_end_with_their_file() -> Iterator[None]:
    """The next file of this process may need ranks of other sizes, or none."""
    yield
    end_waiting_ranks()


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Token shards that a tiny model can learn."""
    return write_shards(tmp_path_factory.mktemp("data") / "train")


@pytest.fixture(scope="module")
def reference(shards: Path) -> list[float]:
    """Losses of the plain loop on `shards`."""
    found = plain_losses(shards, TRAINING["steps"])
    assert found[-1] < found[0] - 0.5, "the reference itself must learn"
    return found
