"""The sweep of collectives: two hosts of two ranks each as processes that share one import of PyTorch, over gloo."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fake_world import REPOSITORY

pytest.importorskip("torch")
pytestmark = pytest.mark.torch
FOLDER = REPOSITORY / "runs/scripts/allgather"

#: Forks the four ranks of one job; rank 0's output is what comes out.
FORK = """
import os, sys, tempfile
import torch, torch.distributed
import allgather
store = tempfile.mkdtemp()
pids = []
for rank in range(4):
    pid = os.fork()
    if pid == 0:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank % 2), WORLD_SIZE="4", LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1")
        initialise = torch.distributed.init_process_group
        meet = dict(init_method="file://" + store + "/s", rank=rank, world_size=4)
        torch.distributed.init_process_group = lambda backend: initialise(backend, **meet)
        try:
            allgather.main()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    pids.append(pid)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids))
"""


def sweep(*arguments: str) -> tuple[list[dict], str]:
    path = f"{FOLDER}:{REPOSITORY / 'containers/driver'}"
    environ = {"PYTHONPATH": path, "PATH": str(Path(sys.executable).parent), "GLOO_SOCKET_IFNAME": "lo"}
    environ |= {"SM_CURRENT_INSTANCE_TYPE": "ml.p4d.24xlarge", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", FORK, *arguments], env=environ, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line[8:]) for line in done.stdout.splitlines() if line.startswith("slipway {")]
    return [event for event in events if event["event"] == "collective"], done.stdout


@pytest.mark.slow
def test_every_size_and_number_of_ranks_is_measured_against_the_line_rate_of_the_instance_type() -> None:
    rows, output = sweep("--min-bytes", "4096", "--max-bytes", "65536", "--seconds", "0.01")
    assert [(row["ranksPerHost"], row["ranks"], row["bytes"]) for row in rows] == [
        (per_host, 2 * per_host, size) for per_host in (1, 2) for size in (4096, 16384, 65536)
    ]
    for row in rows:
        assert row["backend"] == "gloo" and row["collective"] == "all_gather"
        expected = row["bytes"] / row["seconds"] * (row["ranks"] - 1) / row["ranks"] / 1e9
        assert row["busBandwidthGBps"] == pytest.approx(expected, abs=0.001)
        assert row["lineRatePercent"] == pytest.approx(100 * expected / 50, abs=0.1)
    assert "skipping nccl: needs GPUs" in output and "skipping smddp: not in this image" in output
    assert len([line for line in output.splitlines() if line.startswith("gloo ")]) == 6


@pytest.mark.slow
@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter"])
def test_other_collectives_are_swept_too(collective: str) -> None:
    few = ("--max-bytes", "1048576", "--seconds", "0.01", "--ranks-per-host", "2,8", "--line-rate-gbps", "1")
    rows, _ = sweep("--collective", collective, *few)
    assert [(row["collective"], row["ranksPerHost"], row["bytes"]) for row in rows] == [(collective, 2, 1 << 20)]
