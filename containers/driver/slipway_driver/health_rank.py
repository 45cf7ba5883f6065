"""Measurements of the health check: `python -m slipway_driver.health_rank`, one process per GPU of one host.

Each rank times bf16 matrix multiplications on its GPU; then all ranks take part in an all-reduce. Rank 0 prints one line of JSON. In the
driver, PyTorch is imported only here and in probe_rank.py.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from slipway_driver.expected_bandwidth import bus_bandwidth_gbps

#: Large enough to fill an H200. CPUs are used only in tests.
GPU_SIZE, CPU_SIZE = 8192, 256
REDUCED_BYTES, CPU_REDUCED_BYTES = 1 << 30, 1 << 20
WARM_UP, TIMES = 3, 20
#: Covers imports, NCCL initialization and the measurements.
PATIENCE_SECONDS = 180.0
POLL_SECONDS = 0.1


def run_ranks(python: str, environ: Mapping[str, str], folder: Path, ranks: int, stopped: threading.Event) -> Optional[Dict[str, Any]]:
    """Starts one rank per GPU and returns `{"tflops": [...], "busBandwidthGBps": ...}`; None if they fail or `stopped` is set."""
    if ranks < 1:
        return None
    port = _free_port()
    started: List[subprocess.Popen] = []
    for rank in range(ranks):
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        output = subprocess.PIPE if rank == 0 else subprocess.DEVNULL
        command = [python, "-u", "-m", "slipway_driver.health_rank"]
        started.append(subprocess.Popen(command, env=dict(environ, **own), cwd=str(folder), stdout=output, stderr=subprocess.DEVNULL))
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while started[0].poll() is None and time.monotonic() < deadline:
            if stopped.wait(POLL_SECONDS):
                return None
        first = started[0]
        return _answer(first.stdout.read().decode("utf-8", "replace")) if first.poll() == 0 and first.stdout else None
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def _answer(text: str) -> Optional[Dict[str, Any]]:
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                return dict(json.loads(line))
            except ValueError:
                return None
    return None


def _rounded(speed: float) -> float:
    """Six significant digits. With a number of decimals, the speed of a busy CPU would become 0."""
    return float("%.6g" % speed)


def main() -> None:
    """Runs one rank of the measurements, with the environment variables that torchrun would set; rank 0 prints the results as one line of
    JSON."""
    import torch
    import torch.distributed as dist

    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")

    def seconds_of(work: Any) -> float:
        for _ in range(WARM_UP):
            work()
        if on_gpu:
            torch.cuda.synchronize()
        begin = time.monotonic()
        for _ in range(TIMES):
            work()
        if on_gpu:
            torch.cuda.synchronize()
        return (time.monotonic() - begin) / TIMES

    size = GPU_SIZE if on_gpu else CPU_SIZE
    left, right = (torch.randn(size, size, device=device).to(torch.bfloat16) for _ in range(2))
    tflops = 2.0 * size**3 / seconds_of(lambda: torch.mm(left, right)) / 1e12
    reduced = torch.zeros((REDUCED_BYTES if on_gpu else CPU_REDUCED_BYTES) // 4, device=device)
    each, world = seconds_of(lambda: dist.all_reduce(reduced)), dist.get_world_size()
    gathered = [torch.zeros(1, dtype=torch.float64, device=device) for _ in range(world)]
    dist.all_gather(gathered, torch.tensor([tflops], dtype=torch.float64, device=device))
    if dist.get_rank() == 0:
        facts = {"tflops": [_rounded(float(value)) for value in gathered]}
        if world > 1:
            facts["busBandwidthGBps"] = _rounded(bus_bandwidth_gbps(reduced.numel() * 4, each, world))  # type: ignore[assignment]
        print(json.dumps(facts), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    sys.exit(0)
