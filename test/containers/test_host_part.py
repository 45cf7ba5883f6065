"""bench:host: the host does as much in a step of 1,024 ranks as in one of 32. Times are not compared."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fake_world import REPOSITORY

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

sys.path.append(str(REPOSITORY / "bench/trainer"))

import host_part  # noqa: E402
from measurement import write_tokens  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

LAYERS, STEPS = 2, 4


class Operations(TorchDispatchMode):
    """Operations of one step outside of forward pass, backward pass and optimizer."""

    def __init__(self, clock: host_part.HostTime) -> None:
        super().__init__()
        self.clock, self.counted, self.calls = clock, Counter[str](), 0
        clock.after_step = self.after_step

    def after_step(self, step: int) -> None:
        if step == STEPS - 1:
            self.counted.clear()
            self.calls = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self.clock.is_apart:
            self.counted[str(function)] += 1
        return function(*args, **(kwargs or {}))

    def profiled(self, frame: Any, event: str, _argument: Any) -> None:
        """Calls of Python functions. How often a sample is drawn again (order.py) depends on its number."""
        self.calls += event == "call" and not self.clock.is_apart and not frame.f_code.co_filename.endswith("order.py")


def operations_of(ranks: int, folder: Path) -> Operations:
    clock = host_part.HostTime(STEPS)
    job = host_part.job_of(ranks, LAYERS, folder / str(ranks))
    with host_part.first_of(ranks, job, folder / "tokens") as trainer, Operations(clock) as operations:
        sys.setprofile(operations.profiled)
        try:
            host_part.train(trainer, clock)
        finally:
            sys.setprofile(None)
    return operations


def test_the_host_does_as_much_for_1024_ranks_as_for_32(tmp_path: Path) -> None:
    write_tokens(tmp_path / "tokens", host_part.VOCABULARY, 10**5)
    few, many = operations_of(32, tmp_path), operations_of(1024, tmp_path)
    assert few.counted and few.counted == many.counted
    assert few.clock.all_reduces == many.clock.all_reduces == 2 * STEPS, "the gradient norm, and the tally"
    assert few.calls == pytest.approx(many.calls, rel=0.1), "a wait for data is a few calls more"


def test_the_norm_of_a_split_model_is_summed_once_over_each_kind_of_group(tmp_path: Path) -> None:
    write_tokens(tmp_path / "tokens", host_part.VOCABULARY, 10**5)
    job = host_part.job_of(16, LAYERS, None)
    job["distribution"]["parameters"] = {"tensor_parallel_degree": 2, "replicate_degree": 2}
    clock = host_part.HostTime(STEPS)
    with host_part.first_of(16, job, tmp_path / "tokens") as trainer, Operations(clock) as operations:
        host_part.train(trainer, clock)
    assert clock.all_reduces == 3 * STEPS, "over shards, over the tensor-parallel group, and the tally"
    # The sums of squares of each kind, not each parameter's.
    assert operations.counted["aten._foreach_norm.Scalar"] <= 4


def test_a_sum_over_hosts_takes_what_was_measured_on_two_and_grows_with_their_logarithm() -> None:
    seconds = [host_part.all_reduce_seconds(ranks) for ranks in (8, 16, 32, 1024)]
    assert seconds[:2] == [host_part.INSIDE_SECONDS, pytest.approx(host_part.TWO_HOSTS_SECONDS)]
    assert seconds[3] - seconds[0] == pytest.approx(7 * (seconds[1] - seconds[0]))


@pytest.mark.slow
def test_the_benchmark_prints_a_row_for_each_number_of_ranks(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    assert host_part.main(["--ranks", "8", "16", "--steps", "5", "--layers", "2"]) == 0
    rows = [line.split() for line in capfd.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == ["8", "16"]
    assert all(float(number) > 0 for row in rows for number in row[1:6])
