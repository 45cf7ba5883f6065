"""Starts the measuring ranks of the health check (health_rank.py) and watches all of them, so that one that dies or hangs is found."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from slipway_driver.error_lines import BARE_EXCEPTION, HARDWARE, PEER_LOST, SYSTEM_ERROR
from slipway_driver.health_findings import Finding, tuning
from slipway_driver.health_rank import ALL_REDUCE, MATMUL, NOT_THE_GPU, STAGE, is_gpu_error
from slipway_driver.log import redacted, secrets_of

#: How long the ranks may take until all have imported PyTorch, which may be slow on a healthy host, and then for CUDA, NCCL and the
#: measurements, which take less than a minute.
START_SECONDS, MEASURE_SECONDS = 300.0, 180.0
POLL_SECONDS = 0.1
#: How long the cause is awaited after the end of a rank that only lost another one, and how long a killed rank is awaited.
SETTLE_SECONDS, KILL_SECONDS = 2.0, 5.0
TAIL_LINES = 10
#: The measurement within the host must not depend on the plugins for the network between hosts
#: (https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html, 2026-11-26), and it covers all GPUs.
_SET = {"NCCL_NET": "Socket", "NCCL_NET_PLUGIN": "none"}
_UNSET = ("CUDA_VISIBLE_DEVICES", "NCCL_TUNER_PLUGIN")
#: Signals that say nothing about a GPU: SIGKILL comes from the kernel's out-of-memory killer, SIGBUS from a full /dev/shm, and the others
#: from a stop of the job.
_FOREIGN_SIGNALS = (-signal.SIGKILL, -signal.SIGBUS, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP)
#: The stages that use the GPU, in their order, after the import of PyTorch.
_STAGES = ["", MATMUL, ALL_REDUCE]


class Setup(NamedTuple):
    """How to start the ranks: one per GPU."""

    python: str
    environ: Mapping[str, str]
    folder: Path
    gpus: int


class Measured(NamedTuple):
    """`facts`: the JSON of rank 0, empty without a result; `findings`: why there is none; `lines`: the last lines of a failed rank."""

    facts: Dict[str, Any]
    findings: List[Finding]
    lines: List[str]


class _Rank:
    """One measuring process. Its output goes to files: a pipe that nobody reads would block it."""

    def __init__(self, setup: Setup, rank: int, port: int, logs: Path) -> None:
        self.number, self._out, self._err = rank, logs / ("%d.out" % rank), logs / ("%d.err" % rank)
        ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(setup.gpus)}
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        environ = {name: value for name, value in setup.environ.items() if name not in _UNSET}
        command = [setup.python, "-u", "-m", "slipway_driver.health_rank"]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                command, env={**environ, **_SET, **ranks, **place}, cwd=str(setup.folder), stdout=out, stderr=err
            )

    @property
    def code(self) -> Optional[int]:
        """The exit code, negative for a signal; None while the process runs."""
        return self._process.poll()

    @property
    def stage(self) -> str:
        """The last stage that the rank has reached; "" before it has imported PyTorch."""
        stages = re.findall("^%s(.*)$" % STAGE, self._text(self._out), re.MULTILINE)
        return stages[-1] if stages else ""

    def answer(self) -> Optional[Dict[str, Any]]:
        """The result that the rank printed."""
        last = next((line for line in reversed(self._text(self._out).splitlines()) if line.startswith("{")), "")
        with contextlib.suppress(ValueError):
            return dict(json.loads(last))
        return None

    def errors(self) -> List[str]:
        """The lines of standard error that are not empty."""
        return [line for line in self._text(self._err).splitlines() if line.strip()]

    @property
    def order(self) -> int:
        """The number of the last stage; a rank on the CPU is behind those that use the GPU."""
        return _STAGES.index(self.stage) if self.stage in _STAGES else len(_STAGES)

    def blames_gpu(self, tuned: Sequence[str]) -> bool:
        """Whether the rank ended because of its GPU or the connections between the GPUs, as far as its end shows. With `tuned` variables,
        NCCL may also fail on a healthy host."""
        text, code = "\n".join(self.errors()), self.code
        if self.stage not in (MATMUL, ALL_REDUCE) or code in (NOT_THE_GPU, *_FOREIGN_SIGNALS):
            return False
        if is_gpu_error(text):
            return True
        return not (PEER_LOST.search(text) or SYSTEM_ERROR.search(text) or (tuned and self.stage == ALL_REDUCE))

    def names_hardware(self) -> bool:
        """Whether the rank reports an error that only a broken host has."""
        return self.stage in (MATMUL, ALL_REDUCE) and bool(HARDWARE.search("\n".join(self.errors())))

    def kill(self) -> None:
        """Ends the process. One that hangs in NVIDIA's kernel driver cannot be killed and is left."""
        if self.code is None:
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(KILL_SECONDS)

    @staticmethod
    def _text(path: Path) -> str:
        return path.read_text(encoding="utf-8", errors="replace")


def measure(setup: Setup, stopped: threading.Event) -> Measured:
    """Measures a host; without facts and findings if `stopped` is set."""
    if setup.gpus < 1:
        return Measured({}, [Finding("measurement", "the GPUs were not measured: nvidia-smi lists none", False)], [])
    with tempfile.TemporaryDirectory(prefix="slipway-health-") as logs:
        port = _free_port()
        ranks: List[_Rank] = []
        try:
            for rank in range(setup.gpus):
                ranks.append(_Rank(setup, rank, port, Path(logs)))
            found = _watched(ranks, tuning(setup.environ), stopped)
        finally:
            for rank in ranks:
                rank.kill()
    secrets = secrets_of(setup.environ)
    findings = [finding._replace(reason=redacted(finding.reason, secrets)) for finding in found.findings]
    return found._replace(findings=findings, lines=[redacted(line, secrets) for line in found.lines])


def _watched(ranks: Sequence[_Rank], tuned: Sequence[str], stopped: threading.Event) -> Measured:
    """Waits for the result, for ranks that fail, or for the limit."""
    begun: Optional[float] = None
    deadline, settled = time.monotonic() + START_SECONDS, None
    while not stopped.wait(POLL_SECONDS):
        # What happens after the result, while processes end, says nothing about the GPUs.
        if ranks[0].code == 0 or ranks[0].answer() is not None:
            facts = ranks[0].answer()
            if facts is not None:
                return Measured(facts, [], [])
            reason = "the GPUs were not measured: the measurement ended without a result"
            return Measured({}, [Finding("measurement", reason, False)], ranks[0].errors()[-TAIL_LINES:])
        now, failed = time.monotonic(), [rank for rank in ranks if rank.code]
        if failed and settled is None and (now >= deadline or _are_comparable(ranks, failed)):
            settled = now + SETTLE_SECONDS
        if any(rank.names_hardware() for rank in failed) or (settled is not None and now >= settled):
            return _failed(failed, len(ranks), tuned)
        if begun is None and all(rank.stage for rank in ranks):
            begun, deadline = now, now + MEASURE_SECONDS
        if not failed and now >= deadline:
            return _silent(ranks, begun is not None, tuned)
    return Measured({}, [], [])


def _are_comparable(ranks: Sequence[_Rank], failed: Sequence[_Rank]) -> bool:
    """Whether the other ranks have come to where one failed: they have multiplied too, or wait in the all-reduce, or have failed as well.
    An image with which nothing can be computed fails on every GPU, a broken GPU alone."""
    first = min(rank.order for rank in failed)
    needed = first + 1 if _STAGES[first : first + 1] == [MATMUL] else first
    return all(rank.code or rank.order >= needed for rank in ranks)


def _failed(failed: Sequence[_Rank], count: int, tuned: Sequence[str]) -> Measured:
    """Refuses the host if a rank names broken hardware, or if some of its GPUs failed and others did not."""
    causes = [rank for rank in failed if rank.blames_gpu(tuned)]
    named = [rank for rank in causes if rank.names_hardware()]
    refuses = bool(named) or 0 < len(causes) < count
    rank = (named or causes or failed)[0]
    errors, code = rank.errors(), rank.code or 0
    how = "exit code %d" % code if code > 0 else "signal %d" % -code
    where = rank.stage or "the import of PyTorch"
    last = [line for line in errors if BARE_EXCEPTION.match(line)] or errors
    reason = "GPU %d failed in %s with %s" if refuses else "the GPUs were not measured: rank %d failed in %s with %s"
    reason = reason % (rank.number, where, how) + (": %s" % last[-1] if last else "")
    return Measured({}, [Finding("measurement", reason, refuses)], errors[-TAIL_LINES:])


def _silent(ranks: Sequence[_Rank], begun: bool, tuned: Sequence[str]) -> Measured:
    """The ranks that are the furthest behind keep the others waiting."""
    running = [rank for rank in ranks if rank.code is None]
    behind = [rank for rank in running if rank.order == min(one.order for one in running)]
    numbers, stage = ", ".join(str(rank.number) for rank in behind), behind[0].stage
    refuses = begun and stage in (MATMUL, ALL_REDUCE) and not (tuned and stage == ALL_REDUCE)
    if refuses:
        reason = "GPU %s: no answer in %d s in %s" % (numbers, MEASURE_SECONDS, stage)
    else:
        seconds, where = (MEASURE_SECONDS, stage) if begun else (START_SECONDS, "the import of PyTorch")
        reason = "the GPUs were not measured: no answer of rank %s in %d s in %s" % (numbers, seconds, where)
    return Measured({}, [Finding("measurement", reason, refuses)], behind[0].errors()[-TAIL_LINES:])


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
