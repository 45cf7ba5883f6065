"""Health check of a host, once before its ranks start for the first time (`compute.healthCheck`).

`quick` runs NVIDIA's tools and counts devices, which takes seconds. `full` adds a matrix multiplication on each GPU, an all-reduce between
the GPUs of the host, and DCGM's short diagnostic if the image has it, which takes about a minute. A rejected host reports a `hardware`
failure, so that a spare host replaces it before the first step; without a spare host, the attempt ends and the next one gets other hosts.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from slipway_driver import health_answers as answers
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import TRY_AGAIN
from slipway_driver.health import ECC_QUERY
from slipway_driver.health_answers import Finding
from slipway_driver.health_rank import run_ranks
from slipway_driver.inventory import count_gpus
from slipway_driver.log import log, say
from slipway_driver.progress import progress_line
from slipway_driver.restart_policy import HARDWARE
from slipway_driver.tables import EFA_INSTANCES, GPU_INSTANCES

MODES = ("off", "quick", "full")
_CSV = "--format=csv,noheader,nounits"
_CLOCKS = "index,%s.hw_thermal_slowdown,%s.hw_power_brake_slowdown"
QUICK: Mapping[str, Sequence[str]] = {
    "gpus": ("nvidia-smi", "--list-gpus"),
    "memory": ECC_QUERY,
    "remap": ("nvidia-smi", "--query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure", _CSV),
    "clocks": ("nvidia-smi", "--query-gpu=" + _CLOCKS % (("clocks_event_reasons",) * 2), _CSV),
    "links": ("nvidia-smi", "nvlink", "--status"),
    "kernel": ("dmesg", "--notime"),
}
DCGM = ("dcgmi", "diag", "-r", "1", "--json")
#: nvidia-smi takes seconds on eight GPUs without persistence mode; DCGM's short diagnostic takes well under a minute.
ANSWER_SECONDS, DIAGNOSIS_SECONDS = 30.0, 180.0
#: A GPU whose matrix multiplication is slower than SLOW_SHARE of the fastest GPU of its host is defective: healthy GPUs of one host differ
#: by a few percent. A result below PEAK_SHARE of the type's peak is only logged, because clocks and library versions affect it.
SLOW_SHARE, PEAK_SHARE = 0.75, 0.5

#: Standard output of a command; None if the command is missing, is not permitted, or does not finish in time.
Ask = Callable[[Sequence[str], float], Optional[str]]


class Place(NamedTuple):
    """The expected properties of a host. `efa_needed`: the run does not continue without EFA."""

    host: str
    instance_type: str
    efa_devices: int
    efa_needed: bool


def ask(command: Sequence[str], seconds: float) -> Optional[str]:
    """Standard output of a command, regardless of its exit code; None if it is not installed, cannot start or takes longer than
    `seconds`."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(list(command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # If one GPU is lost, nvidia-smi exits with an error but still lists the others.
    return done.stdout.decode("utf-8", "replace")


def count_findings(place: Place, gpus: Optional[str]) -> List[Finding]:
    """Compares the number of GPUs and EFA devices with the instance type. Additional devices are ignored."""
    found: List[Finding] = []
    gpu, efa = GPU_INSTANCES.get(place.instance_type), EFA_INSTANCES.get(place.instance_type)
    if gpu and gpus is not None and count_gpus(gpus) < gpu.count:
        found.append(Finding("gpus", "%d of %d GPUs respond" % (count_gpus(gpus), gpu.count), True))
    # No EFA device at all is caused by the image or the network configuration, which the EFA verdict covers.
    if efa and 0 < place.efa_devices < efa.interfaces:
        found.append(Finding("efa", "%d of %d EFA devices are present" % (place.efa_devices, efa.interfaces), place.efa_needed))
    return found


def quick_answers(asked: Ask) -> Dict[str, Optional[str]]:
    """Runs the quick commands; returns their output by name, None for a command that failed or took longer than ANSWER_SECONDS."""
    return {name: asked(command, ANSWER_SECONDS) for name, command in QUICK.items()}


def quick_findings(place: Place, said: Mapping[str, Optional[str]]) -> List[Finding]:
    """Findings from the output of the quick commands."""
    return [
        *count_findings(place, said["gpus"]),
        *answers.memory_findings(said["memory"]),
        *answers.remap_findings(said["remap"]),
        *answers.clock_findings(said["clocks"]),
        *answers.link_findings(said["links"]),
        *answers.xid_findings(said["kernel"]),
    ]


def speed_findings(place: Place, tflops: Sequence[float]) -> List[Finding]:
    """`tflops`: TFLOP/s of a bf16 matrix multiplication on each GPU, by index."""
    found: List[Finding] = []
    known, best = GPU_INSTANCES.get(place.instance_type), max(tflops, default=0.0)
    for index, got in enumerate(tflops):
        if got < SLOW_SHARE * best:
            found.append(Finding("matmul", "GPU %d: %.0f TFLOP/s in matrix multiplication, another GPU: %.0f" % (index, got, best), True))
    if known and known.bf16_tflops and tflops and best < PEAK_SHARE * known.bf16_tflops:
        reason = "the fastest GPU: %.0f TFLOP/s in matrix multiplication; the peak of its type is %.0f" % (best, known.bf16_tflops)
        found.append(Finding("matmul", reason, False))
    return found


#: Measures a host: `{"tflops": [...], "busBandwidthGBps": ...}`; None if the measurement fails or the event is set.
Measure = Callable[[threading.Event], Optional[Dict[str, Any]]]


class HealthGate:
    """The health check of one host."""

    def __init__(self, mode: str, place: Place, asked: Ask = ask, measure: Optional[Measure] = None) -> None:
        self._mode, self._place, self._ask, self._measure = mode, place, asked, measure
        self._done = mode == "off"
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Called on SIGTERM: stops a measurement in progress."""
        self._stopped.set()

    def check(self) -> Optional[Failure]:
        """Returns the reason why training must not start on this host; None if it may. Only the first call checks; later failures are
        judged by `Health`."""
        if self._done:
            return None
        self._done = True
        before = time.monotonic()
        said = quick_answers(self._ask)
        found = quick_findings(self._place, said)
        measured: Optional[Dict[str, Any]] = None
        # A host that is already rejected is not measured, because its GPUs may not respond.
        if self._mode == "full" and not any(finding.refuses for finding in found):
            found += answers.dcgm_findings(self._ask(DCGM, DIAGNOSIS_SECONDS))
            measured = self._measure(self._stopped) if self._measure else None
            found += speed_findings(self._place, (measured or {}).get("tflops", []))
        answered = [name for name, text in said.items() if text]
        self._tell(found, {"answered": answered, **(measured or {})}, time.monotonic() - before)
        refusing = [finding.reason for finding in found if finding.refuses]
        if not refusing:
            return None
        return Failure(TRY_AGAIN, HARDWARE, None, "health check before training: %s" % "; ".join(refusing), [])

    def _tell(self, found: Sequence[Finding], facts: Mapping[str, Any], seconds: float) -> None:
        for finding in found:
            log("health: %s%s" % (finding.reason, "; training does not start on this host" if finding.refuses else ""))
        findings = [finding._asdict() for finding in found]
        say(progress_line("health", host=self._place.host, mode=self._mode, seconds=round(seconds, 1), findings=findings, **facts))


def measure_with(python: str, environ: Mapping[str, str], folder: Path, gpus: int) -> Measure:
    """Measures in subprocesses, so that the driver holds no GPU memory and does not import PyTorch."""

    def measure(stopped: threading.Event) -> Optional[Dict[str, Any]]:
        return run_ranks(python, environ, folder, gpus, stopped)

    return measure
