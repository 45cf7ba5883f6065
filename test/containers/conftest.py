"""One thread for PyTorch, the cases that a run draws, and what the tests of the trainer share."""

import os
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before any test imports PyTorch: the models are tiny, and threads that wait for each other burn the machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Before xdist starts its workers, which inherit it: all of them must draw the same.
os.environ.setdefault("SLIPWAY_TEST_SEED", str(random.SystemRandom().randrange(1, 1 << 31)))

from forked import end_waiting_ranks
from plain_loop import plain_losses
from rank_world import TRAINING, write_shards

SEED = os.environ["SLIPWAY_TEST_SEED"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-cases", action="store_true", help="play every case of the tests that are marked with drawn(n)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the cases that this run does not play."""
    if config.getoption("--all-cases"):
        return
    left_out = cases_left_out(items)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def cases_left_out(items: list[pytest.Item]) -> set[str]:
    """Ids of the cases of tests marked `drawn(n)` that are not among the n which the seed draws. Tests with the same `of` share their n."""
    cases: dict[str, list[str]] = defaultdict(list)
    count: dict[str, int] = {}
    for item in items:
        if mark := item.get_closest_marker("drawn"):
            test = mark.kwargs.get("of") or item.nodeid.partition("[")[0]
            cases[test].append(item.nodeid)
            count[test] = mark.args[0]
    kept = {one for test, found in cases.items() for one in random.Random(SEED + test).sample(found, min(count[test], len(found)))}
    return {one for found in cases.values() for one in found} - kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"drawn with SLIPWAY_TEST_SEED={SEED}; --all-cases plays every case")


@pytest.fixture
def plays_all(request: pytest.FixtureRequest) -> bool:
    """Whether this run plays every case: for tests marked `drawn` that draw cases of their own."""
    return request.config.getoption("--all-cases")


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
