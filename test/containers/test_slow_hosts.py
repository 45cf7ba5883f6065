"""The host that all others wait for."""

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import torch.distributed as dist  # noqa: E402

from slipway_trainer import slow_hosts  # noqa: E402
from slipway_trainer.slow_hosts import Slow, SlowHosts, slow_host  # noqa: E402

EVEN = [0.010, 0.0101, 0.0099, 0.010]


def test_hosts_that_differ_little_are_no_finding() -> None:
    assert slow_host(EVEN, [0.1] * 4, 2, 1.0) is None
    assert slow_host([0.02], [0.9], 1, 1.0) is None, "one host has nobody to compare with"


def test_one_slow_gpu_makes_its_host_the_slow_one() -> None:
    found = slow_host([0.010, 0.010, 0.010, 0.015, 0.010, 0.010], [0.0] * 6, 2, 1.0)
    assert found == Slow(1, "compute", pytest.approx(1.5))


def test_a_host_that_reads_slowly_is_found_by_what_a_step_would_take_without_it() -> None:
    assert slow_host(EVEN, [0.0, 0.0, 0.0, 0.5], 2, 1.0) == Slow(1, "data", pytest.approx(2.0))
    assert slow_host(EVEN, [0.0, 0.0, 0.0, 0.1], 2, 1.0) is None


def test_it_is_said_at_the_second_finding_and_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    try:
        hosts = SlowHosts(torch.device("cpu"), dist.group.WORLD, 1, every_seconds=60.0)
        assert not hosts.due
        hosts.waited(0.25)
        findings = iter([Slow(3, "compute", 1.4), Slow(3, "compute", 1.5), Slow(3, "compute", 1.5), None, None])
        monkeypatch.setattr(slow_hosts, "slow_host", lambda *_args: next(findings))
        said = [hosts.check(1.0) for _ in range(5)]
        assert said == [(False, None), (True, Slow(3, "compute", 1.5)), (False, None), (True, None), (False, None)]
    finally:
        dist.destroy_process_group()
