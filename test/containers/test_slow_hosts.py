"""The host or the network that all hosts wait for."""

import itertools
import json
from pathlib import Path

import pytest

from fake_world import direct_checkpoints
from rank_world import events, run_ranks, trainer_job, write_shards

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import torch.distributed as dist  # noqa: E402

from slipway_trainer import slow_hosts  # noqa: E402
from slipway_trainer.slow_hosts import Slow, SlowHosts, Times, rounds, slow_host, slow_link  # noqa: E402

EVEN = [0.010, 0.0101, 0.0099, 0.010]


def test_hosts_that_differ_little_are_no_finding() -> None:
    assert slow_host(Times(EVEN, [0.1] * 4), 2, 1.0) is None
    assert slow_host(Times([0.02], [0.9]), 1, 1.0) is None, "one host has nobody to compare with"


def test_one_slow_gpu_makes_its_host_the_slow_one_and_is_named() -> None:
    found = slow_host(Times([0.010, 0.010, 0.010, 0.015, 0.010, 0.010], [0.0] * 6), 2, 1.0)
    assert found == Slow((1,), "compute on GPU 1", pytest.approx(1.5))
    assert slow_host(Times([0.010, 0.010, 0.015], [0.0] * 3), 1, 1.0) == Slow((2,), "compute", pytest.approx(1.5))


def test_a_host_that_reads_slowly_is_found_by_what_a_step_would_take_without_it() -> None:
    assert slow_host(Times(EVEN, [0.0, 0.0, 0.0, 0.5]), 2, 1.0) == Slow((1,), "data", pytest.approx(2.0))
    assert slow_host(Times(EVEN, [0.0, 0.0, 0.0, 0.1]), 2, 1.0) is None


@pytest.mark.parametrize("hosts", range(1, 12))
def test_each_host_exchanges_with_both_neighbors_and_with_one_at_a_time(hosts: int) -> None:
    found = rounds(hosts)
    assert len(found) <= (2 if hosts % 2 == 0 else 3)
    for pairs in found:
        members = [host for pair in pairs for host in pair]
        assert len(members) == len(set(members))
    neighbors = {frozenset((host, (host + 1) % hosts)) for host in range(hosts)} if hosts > 1 else set()
    assert {frozenset(pair) for pairs in found for pair in pairs} == neighbors


def exchanged(hosts: int, slow: "list[tuple[int, int]]", per_host: int = 2) -> Times:
    """Exchanges of 1 ms, except those of the pairs that are slow; one local rank shows it."""
    found = []
    for pairs in rounds(hosts):
        seconds = [0.0] * (hosts * per_host)
        for pair in pairs:
            for host in pair:
                for local in range(per_host):
                    seconds[host * per_host + local] = 0.004 if pair in slow and local == 0 else 0.001
        found.append(seconds)
    return Times([0.01] * (hosts * per_host), [0.0] * (hosts * per_host), found)


@pytest.mark.parametrize("hosts", (3, 4, 5, 8, 9))
def test_the_host_that_is_common_to_two_slow_exchanges_has_a_slow_link(hosts: int) -> None:
    for host in range(hosts):
        of_host = [pair for pairs in rounds(hosts) for pair in pairs if host in pair]
        assert slow_link(exchanged(hosts, of_host), 2, 1e-4) == Slow((host,), "network", pytest.approx(4.0))


@pytest.mark.parametrize("hosts", range(5, 12))
def test_the_first_of_several_slow_hosts_is_named_while_the_others_are_the_yardstick(hosts: int) -> None:
    pairs = [pair for some in rounds(hosts) for pair in some]
    for first, second in itertools.combinations(range(hosts), 2):
        slow = [pair for pair in pairs if first in pair or second in pair]
        found = slow_link(exchanged(hosts, slow), 2, 1e-4)
        together = set.intersection(*map(set, slow))
        if len(slow) > 0.75 * len(pairs):
            assert found is None, "most are slow"
        else:
            assert found == Slow((min(together) if together else first,), "network", pytest.approx(4.0))


def test_no_host_is_named_without_evidence() -> None:
    assert slow_link(exchanged(4, []), 2, 1e-4) is None
    assert slow_link(exchanged(4, [(1, 2)]), 2, 1e-4) == Slow((1, 2), "network", pytest.approx(4.0)), "either of the two"
    assert slow_link(exchanged(8, [(0, 1), (4, 5)]), 2, 1e-4) is None, "no host in common"
    assert slow_link(exchanged(2, [(0, 1)]), 2, 1e-4) is None, "nothing to compare with"
    assert slow_link(exchanged(4, [(0, 1), (1, 2)]), 2, 0.01) is None, "too short to say"


@pytest.fixture
def alone() -> "SlowHosts":
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield SlowHosts(torch.device("cpu"), dist.group.WORLD, 1, every_seconds=60.0)
    dist.destroy_process_group()


def test_it_is_said_at_the_second_finding_and_when_it_is_over(alone: SlowHosts, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not alone.due
    alone.waited(0.25)
    findings = iter([Slow((3,), "compute", 1.4), Slow((3,), "compute", 1.5), Slow((3,), "compute", 1.5), None, None])
    monkeypatch.setattr(slow_hosts, "slow_host", lambda *_args: next(findings))
    said = [alone.check(1.0) for _ in range(5)]
    assert said == [(False, None), (True, Slow((3,), "compute", 1.5)), (False, None), (True, None), (False, None)]


def test_a_slow_network_of_all_hosts_is_found_by_the_all_reduces_before_it(alone: SlowHosts) -> None:
    assert [alone._slow_network(seconds) for seconds in (0.03, 0.010, 0.011, 0.012)] == [None] * 4
    assert alone._slow_network(0.02) == Slow((), "all-reduce", pytest.approx(2.0))


def test_comparisons_take_at_most_a_thousandth_of_the_time(alone: SlowHosts, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [alone._began_at]
    monkeypatch.setattr(slow_hosts.time, "monotonic", lambda: now[0])

    def check(_step_seconds: float) -> "tuple[bool, None]":
        now[0] += takes
        return False, None

    monkeypatch.setattr(alone, "check", check)
    spent, takes, checks = 0.0, 2.0, 0
    for _ in range(20_000):
        now[0] += 1.0
        if alone.due:
            alone.compare(1.0)
            spent, checks = spent + takes, checks + 1
            # The first one makes connections; its length is not known before.
            assert checks == 1 or spent <= 0.001 * (now[0] - alone._began_at) + 1e-6
            takes = 0.5
    assert checks >= 20, "it is compared again and again"


def test_comparisons_of_hosts_do_not_change_what_is_trained(tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "shards")
    # More than one comparison in a run of seconds.
    (tmp_path / "patch.py").write_text("from slipway_trainer import slow_hosts\nslow_hosts.SHARE = float('inf')\n")
    seen = []
    for name, seconds in (("with", "0.000001"), ("without", "0")):
        checkpoints = direct_checkpoints(tmp_path / f"saved-{name}", keep=9)
        job = trainer_job(arguments=["--host-check-seconds", seconds, "--save-every-steps", "6"], checkpoints=checkpoints)
        root = tmp_path / name
        code, output = run_ranks(root, 4, job, {"train": shards}, LOCAL_WORLD_SIZE="1", patch=str(tmp_path / "patch.py"))
        assert code == 0, output
        checks = events(output, "host-check")
        assert [event["network"] for event in checks] == [True] * len(checks) and len(checks) == (6 if name == "with" else 0), checks
        record = json.loads((tmp_path / f"saved-{name}" / "step-6" / "COMMITTED.json").read_text())
        losses = [event["loss"] for event in events(output, "step")]
        seen.append((losses, sorted(entry["sha256"] for entry in record["objects"] if not entry["key"].endswith(".metadata"))))
    assert len(seen[0][0]) == 6 and seen[0] == seen[1]


SLOW_LINK = """
from slipway_trainer import slow_hosts
import torch.distributed as dist
measured = slow_hosts.SlowHosts._measured
def measure(self, own, other):
    reduced, *exchanges = measured(self, own, other)
    return [reduced, *(one + (dist.get_rank() == 1 and one > 0) for one in exchanges)]
slow_hosts.SlowHosts._measured = measure
# Other work on the machine makes the processor of a rank slow, which is not what this run is about.
slow_hosts.slow_host = lambda *_arguments: None
"""

DEAD_PEER = """
import os, signal
from slipway_trainer import slow_hosts
import torch.distributed as dist
exchange = slow_hosts._exchange
def killed(own, other, partner):
    if dist.get_rank() == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    exchange(own, other, partner)
slow_hosts._exchange = killed
"""


def test_a_host_with_a_slow_link_is_named_by_a_run(tmp_path: Path) -> None:
    job, shards = trainer_job(arguments=["--host-check-seconds", "0.000001"]), write_shards(tmp_path / "shards")
    # The share of the time is not what this run is about.
    (tmp_path / "patch.py").write_text(SLOW_LINK + "slow_hosts.SHARE = float('inf')\n")
    code, output = run_ranks(tmp_path, 4, job, {"train": shards}, LOCAL_WORLD_SIZE="1", patch=str(tmp_path / "patch.py"))
    assert code == 0, output
    (found,) = events(output, "slow-host")
    assert (found["host"], found["what"]) == (1, "network")


def test_a_rank_that_dies_in_an_exchange_ends_the_others(tmp_path: Path) -> None:
    (tmp_path / "patch.py").write_text(DEAD_PEER)
    job, shards = trainer_job(arguments=["--host-check-seconds", "0.000001"]), write_shards(tmp_path / "shards")
    code, output = run_ranks(tmp_path, 4, job, {"train": shards}, LOCAL_WORLD_SIZE="1", patch=str(tmp_path / "patch.py"))
    assert code != 0 and not events(output, "host-check")
