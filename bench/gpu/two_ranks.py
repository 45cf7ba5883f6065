"""Two NCCL ranks on one GPU: a host id of its own for each makes NCCL take them for two hosts that talk over sockets."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from case import Case, Found
from machine import GIB, Machine, lacks_gpu

from slipway_driver.dumps import trace_variables
from slipway_driver.efa_verdict import EfaVerdict

HELD_GIB = 8
#: Until two ranks have met, and until a broken collective must have ended the other one.
START_SECONDS, END_SECONDS = 120, 120
TIMEOUT_SECONDS = 15


class TwoRanks:
    """Two processes of rank.py on GPU 0."""

    def __init__(self, folder: Path) -> None:
        from torch.distributed import TCPStore

        self.folder = folder
        self._store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.processes = [self._start(rank) for rank in range(2)]

    def _start(self, rank: int) -> subprocess.Popen:
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self._store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
        world = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "TORCHELASTIC_RESTART_COUNT": "0"}
        nccl = {"NCCL_HOSTID": f"host-{rank}", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV", "NCCL_IB_DISABLE": "1"}
        words = [sys.executable, "-u", str(Path(__file__).parent / "rank.py"), str(TIMEOUT_SECONDS), str(HELD_GIB * GIB // 4)]
        environ = os.environ | meeting | world | nccl | trace_variables(self.folder)
        with self._log(rank).open("wb") as log:
            return subprocess.Popen(words, env=environ, stdout=log, stderr=subprocess.STDOUT)

    def _log(self, rank: int) -> Path:
        return self.folder / f"rank-{rank}.log"

    def lines(self, rank: int) -> list[str]:
        return self._log(rank).read_text(errors="replace").splitlines()

    def await_steps(self) -> None:
        """Until both have come through some all-reduces. Raises RuntimeError with the end of a log when they do not."""
        deadline = time.monotonic() + START_SECONDS
        while not all("steps 5" in "\n".join(self.lines(rank)) for rank in range(2)):
            if time.monotonic() > deadline or any(process.poll() is not None for process in self.processes):
                raise RuntimeError("two ranks must train on one GPU, got: " + " | ".join(self.lines(1)[-3:]))
            time.sleep(0.1)

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


def verdict(_machine: Machine, folder: Path) -> Found:
    ranks = TwoRanks(folder)
    try:
        ranks.await_steps()
    finally:
        ranks.end()
    read = EfaVerdict(2, "ml.p5.48xlarge", 0)
    for rank in range(2):
        for line in ranks.lines(rank):
            read.feed(f"[rank {rank}] {line}")
    return Found(f"{read.verdict}; lines in {folder}/rank-*.log", read.verdict == "sockets")


def _other_ends_after(folder: Path, sent: signal.Signals) -> Found:
    ranks = TwoRanks(folder)
    try:
        ranks.await_steps()
        began = time.monotonic()
        ranks.processes[1].send_signal(sent)
        code = ranks.processes[0].wait(END_SECONDS)
        seconds = time.monotonic() - began
    finally:
        ranks.end()
    traces = sorted(path.name for path in folder.iterdir() if path.name not in ("rank-0.log", "rank-1.log") and path.is_file())
    figure = f"rank 0 left with {code} after {seconds:.1f} s; recorder files: {', '.join(traces) or 'none'}"
    return Found(figure, code != 0 and bool(traces))


def killed(_machine: Machine, folder: Path) -> Found:
    return _other_ends_after(folder, signal.SIGKILL)


def frozen(_machine: Machine, folder: Path) -> Found:
    return _other_ends_after(folder, signal.SIGSTOP)


def memory_freed(_machine: Machine, folder: Path) -> Found:
    import torch

    ranks = TwoRanks(folder)
    before = torch.cuda.mem_get_info(0)[0]
    try:
        ranks.await_steps()
        held = before - torch.cuda.mem_get_info(0)[0]
        began = time.monotonic()
    finally:
        ranks.end()
    while before - torch.cuda.mem_get_info(0)[0] > 0.1 * held and time.monotonic() - began < END_SECONDS:
        time.sleep(0.01)
    seconds = time.monotonic() - began
    return Found(f"{held / GIB:.1f} GiB free {seconds:.2f} s after SIGKILL", held > HELD_GIB * GIB and seconds < 60)


CASES = (
    Case("verdict on real NCCL lines, two hosts over sockets", "sockets", lacks_gpu, verdict),
    Case("a killed rank", "the other leaves, and recorder files are there", lacks_gpu, killed),
    Case("a stopped rank", "the other leaves at its time-out, and recorder files are there", lacks_gpu, frozen),
    Case("memory of killed ranks", "free within 60 s", lacks_gpu, memory_freed),
)
