"""The GPUs of a host: which of them an attempt has found broken or suspect, for the heartbeat, from which the control plane remembers them
for later jobs; and their utilization and memory use, read once a minute. Tools like nvidia-smi run with a time limit that holds even if
they cannot be killed.

A GPU is identified by its UUID, which does not change (https://docs.nvidia.com/deploy/nvidia-smi/, "GPU UUID", 2026-11-28). A container
does not know its machine, so a host is identified by the UUIDs of its GPUs. Fields utilization.gpu (percent of the last sample period in
which a kernel ran), memory.used and memory.total (MiB): the same page, 2026-11-23. A GPU that is partitioned by MIG, or lost, reports
`[N/A]` as utilization.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from slipway_driver.restart_policy import HARDWARE, Report


class Answer(NamedTuple):
    """The end of a command. `text`: its standard output; None if it is not installed, cannot start or did not end in time. `code`: its exit
    code; None without one. `late`: it did not end in time."""

    text: Optional[str] = None
    code: Optional[int] = None
    late: bool = False


def answer_of(command: Sequence[str], seconds: float) -> Answer:
    """Runs a command for at most `seconds`."""
    if shutil.which(command[0]) is None:
        return Answer()
    try:
        process = subprocess.Popen(list(command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return Answer()
    try:
        text, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        # A process that waits in NVIDIA's kernel driver does not end on SIGKILL, and subprocess.run would wait for it indefinitely.
        process.kill()
        if process.stdout is not None:
            process.stdout.close()
        return Answer(late=True)
    return Answer(text.decode("utf-8", "replace"), process.returncode)


def gpu_query(fields: str, query: str = "query-gpu") -> Tuple[str, ...]:
    """The command with which nvidia-smi prints fields of each GPU as CSV (https://docs.nvidia.com/deploy/nvidia-smi/, 2026-11-22)."""
    return "nvidia-smi", "--%s=%s" % (query, fields), "--format=csv,noheader,nounits"


def rows(text: Optional[str], cells: int) -> Iterator[List[str]]:
    """The rows of such output that have the expected number of cells. Of a lost GPU, nvidia-smi prints an error instead of a row."""
    for line in (text or "").splitlines():
        row = [cell.strip() for cell in line.split(",")]
        if len(row) == cells:
            yield row


QUERY = gpu_query("index,uuid,pci.bus_id")
#: What the control plane reads of one attempt.
MAX_ENTRIES = 16
#: How the reason ends with which a host is refused because of earlier attempts: it is no evidence of its own.
REMEMBERED = "was found broken in an earlier job"
#: The kind of an entry about GPUs that earlier jobs have reported and that have passed the full health check.
PASSED = "passed"
_UUID = re.compile(r"GPU(-[0-9a-f]{4,12}){5}")
_NUMBERS = re.compile(r"\bGPU (\d+(?:, \d+)*)\b")
#: The error of the program, which may name other GPUs, follows what the driver has found in parentheses.
_ERROR = re.compile(r" \((?!PCI).*$", re.DOTALL)
_BUS = re.compile(r"\b([0-9a-f]{2}:[0-9a-f]{2})(?:\.\d)?\b", re.IGNORECASE)


class Gpu(NamedTuple):
    """One GPU of a host. `bus`: its address on the PCI bus, `00000000:53:00.0`."""

    index: int
    uuid: str
    bus: str


def parse_gpus(text: str) -> List[Gpu]:
    """Parses lines like `0, GPU-3d7408b2-d525-643f-5bfc-45a761045e14, 00000000:53:00.0`. Slices of a GPU (MIG) have no such line."""
    return [Gpu(int(index), uuid, bus) for index, uuid, bus in rows(text, 3) if index.isdigit() and _UUID.fullmatch(uuid)]


def blamed(reason: str, gpus: Sequence[Gpu]) -> List[str]:
    """UUIDs of the GPUs that a reason names by number or address. Numbers are those of nvidia-smi, except that a lost GPU has none."""
    reason = _ERROR.sub("", reason)
    numbers = {int(number) for found in _NUMBERS.findall(reason) for number in found.split(", ")}
    buses = {bus.lower() for bus in _BUS.findall(reason)}
    return [gpu.uuid for gpu in gpus if gpu.index in numbers or gpu.bus.lower()[9:14] in buses]


def evidence(
    broken: Sequence[Report],
    slow: Optional[Mapping[str, Any]],
    gpus: Mapping[str, Sequence[Sequence[Any]]],
    cleared: Mapping[str, Sequence[str]],
) -> List[Dict[str, Any]]:
    """The field of the heartbeat: the named GPUs of each broken host, otherwise all GPUs of the host, as `kind` says; then those of a slow
    host. A slow GPU counts no more than its host, because heat may be the reason. `gpus`: those of each host;
    `cleared`: by host, UUIDs of GPUs that have passed the full check."""
    found: List[Dict[str, Any]] = []
    claims = [(report.host, report.reason, "gpu") for report in broken]
    if slow:
        reason = "it needs %s times as long as the other hosts for %s" % (slow.get("ratio"), slow.get("what"))
        claims.append((str(slow.get("host")), reason, "host"))
    for host, reason, kind in claims:
        own = [Gpu(*gpu) for gpu in gpus.get(host, ())]
        named = blamed(reason, own)
        uuids = named or [gpu.uuid for gpu in own]
        found.append({"host": host, "kind": kind if named else "host", "gpus": uuids, "reason": reason[:200]})
    for host, passed in cleared.items():
        found.append({"host": host, "kind": PASSED, "gpus": list(passed), "reason": "passed the full health check"})
    return [entry for entry in found if entry["gpus"]][:MAX_ENTRIES]


def is_evidence(report: Report) -> bool:
    """Whether a report says something new about the hardware of its host."""
    return report.kind == HARDWARE and REMEMBERED not in report.reason


USE_QUERY = gpu_query("utilization.gpu,memory.used,memory.total")
EVERY_SECONDS, SECONDS_PER_HOST = 60.0, 2.0
#: nvidia-smi takes seconds on eight GPUs without persistence mode.
ANSWER_SECONDS = 20.0


def parse_use(text: str) -> Optional[Dict[str, Any]]:
    """Parses lines like `97, 71234, 81559`: `utilizationPercent` is the mean over the GPUs, `memoryGiB` and `totalGiB` are those of the GPU
    with the highest use.

    None if no GPU responds. `utilizationPercent` is None if no GPU reports its utilization.
    """
    cells = [cells for cells in rows(text, 3) if cells[1].isdigit() and cells[2].isdigit()]
    busy, memory = [int(busy) for busy, _, _ in cells if busy.isdigit()], [(int(used), int(total)) for _, used, total in cells]
    if not memory:
        return None
    used, total = max(memory)
    mean = round(sum(busy) / len(busy), 1) if busy else None
    return {"utilizationPercent": mean, "memoryGiB": round(used / 1024, 1), "totalGiB": round(total / 1024, 1)}


def every(environ: Mapping[str, str], hosts: int) -> float:
    """Seconds between two measurements: SLIPWAY_GPU_SECONDS, otherwise 60, and more for many hosts, which are all in one log line."""
    return float(environ.get("SLIPWAY_GPU_SECONDS") or max(EVERY_SECONDS, SECONDS_PER_HOST * hosts))


class GpuUse:
    """Measures in a thread, so that a slow nvidia-smi does not block the driver. The thread ends if nvidia-smi is not installed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._newest: Optional[Dict[str, Any]] = None
        self._end = threading.Event()

    def start(self) -> None:
        """Starts the measurements in a daemon thread."""
        threading.Thread(target=self._sample, name="gpu-use", daemon=True).start()

    def end(self) -> None:
        """Stops the measurements without waiting for one in progress."""
        self._end.set()

    def _sample(self) -> None:
        while not self._end.wait(self._seconds):
            answer = answer_of(USE_QUERY, ANSWER_SECONDS)
            if answer.code is None and not answer.late:
                return
            self._newest = parse_use(answer.text or "") or self._newest

    def take(self) -> Optional[Dict[str, Any]]:
        """The newest measurement, returned only once; None if there is no new one."""
        newest, self._newest = self._newest, None
        return newest


class MeanUse:
    """Mean GPU utilization over all hosts and measurements of an attempt, including restarts in place."""

    def __init__(self) -> None:
        self._sum, self._samples = 0.0, 0

    def add(self, hosts: Mapping[str, Mapping[str, Any]]) -> None:
        """Adds one measurement of each host; hosts whose GPUs do not report their utilization are ignored."""
        for use in hosts.values():
            busy = use.get("utilizationPercent")
            if isinstance(busy, (int, float)):
                self._sum, self._samples = self._sum + busy, self._samples + 1

    def facts(self) -> Dict[str, Any]:
        """The field of the heartbeat; empty if no GPU has reported its utilization."""
        return {"gpuUtilizationPercent": round(self._sum / self._samples, 1)} if self._samples else {}
