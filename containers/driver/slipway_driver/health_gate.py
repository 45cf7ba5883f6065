"""Health check of a host, once before its ranks start for the first time (`compute.healthCheck`).

`quick` runs NVIDIA's tools and counts devices, which takes seconds. `full` adds a matrix multiplication on each GPU, an all-reduce between
the GPUs of the host, and DCGM's short diagnostic if the image has it, which takes about a minute. A rejected host reports a `hardware`
failure, so that a spare host replaces it before the first step; without a spare host, the attempt ends and the next one gets other hosts.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from slipway_driver import health_findings as health
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import TRY_AGAIN
from slipway_driver.gpus import REMEMBERED, Answer, Gpu, answer_of
from slipway_driver.health_measure import Measured, Setup, measure
from slipway_driver.log import emit, log
from slipway_driver.progress import progress_line
from slipway_driver.restart_policy import HARDWARE

if TYPE_CHECKING:
    from slipway_driver.attempt import Attempt

#: How the reason of a refusal begins.
BEFORE_TRAINING = "health check before training"
DCGM = ("dcgmi", "diag", "-r", "1", "--json")
#: DCGM's short diagnostic takes well under a minute.
DIAGNOSIS_SECONDS = 180.0


def quick_answers(query: Callable[[Sequence[str], float], Answer]) -> Dict[str, Answer]:
    """Runs the quick commands; returns their answers by name. Once nvidia-smi has not answered TRIES times, it is not asked again."""
    replies: Dict[str, Answer] = {}
    hung = False
    for name, command in health.QUICK.items():
        if hung and command[0] == "nvidia-smi":
            replies[name] = Answer()
            continue
        replies[name] = query(command, health.ANSWER_SECONDS)
        if name == "gpus":
            for _ in range(health.TRIES - 1):
                replies[name] = query(command, health.ANSWER_SECONDS) if replies[name].late else replies[name]
            hung = replies[name].late
    return replies


class EarlyAnswers:
    """The answers of the quick commands, which are run at once: while the driver unpacks code and installs packages. The measurements of
    `full` come after these, because packages may replace the PyTorch that they import."""

    def __init__(self, query: Callable[[Sequence[str], float], Answer] = answer_of) -> None:
        self._replies: Dict[str, Answer] = {}
        self._thread = threading.Thread(target=lambda: self._replies.update(quick_answers(query)), name="health", daemon=True)
        self._thread.start()

    def wait(self) -> Dict[str, Answer]:
        """The answers, once there are all of them."""
        self._thread.join()
        return self._replies


class Tools(NamedTuple):
    """What the check runs. `ask`: a command for at most that many seconds; `measure`: without facts and findings if the event is set;
    `tuned`: the variables of the run that change how NCCL communicates within a host."""

    ask: Callable[[Sequence[str], float], Answer]
    measure: Callable[[threading.Event], Measured]
    tuned: Sequence[str] = ()


class HealthGate:
    """The health check of one host. `early`: the answers of the quick commands, if they were run before."""

    def __init__(self, mode: str, place: health.Place, tools: Tools, early: Optional[EarlyAnswers] = None) -> None:
        self._mode, self._place, self._tools, self._early = mode, place, tools, early
        #: UUIDs of suspect GPUs that have passed the full check, with every measurement.
        self.cleared: List[str] = []
        self._done = mode == "off"
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Called on SIGTERM: stops a measurement in progress."""
        self._stopped.set()

    def check(self) -> Optional[Failure]:
        """Why training must not start on this host; None if it may. Only the first call checks; `Health` judges later failures."""
        if self._done:
            return None
        self._done = True
        before = time.monotonic()
        found = [health.Finding("remembered", "GPU %d (%s) %s" % (gpu.index, gpu.uuid, REMEMBERED), True) for gpu in self._place.known_bad]
        replies = {} if found else self._early.wait() if self._early else quick_answers(self._tools.ask)
        found += [] if found else health.quick_findings(self._place, replies)
        measured = Measured({}, [], [])
        # A host that is already rejected is not measured, because its GPUs may not respond.
        if self._mode == "full" and not any(finding.refuses for finding in found):
            found += health.dcgm_findings(self._tools.ask(DCGM, DIAGNOSIS_SECONDS).text)
            measured = self._tools.measure(self._stopped)
            found += [*measured.findings, *health.measured_findings(self._place.instance_type, measured.facts, self._tools.tuned)]
        answered = [name for name, answer in replies.items() if answer.text]
        for line in measured.lines:
            log("health: measurement: %s" % line)
        self._report(found, {"answered": answered, **measured.facts}, time.monotonic() - before)
        refusing = [finding.reason for finding in found if finding.refuses]
        if not refusing:
            # A measurement that was skipped, or a finding, clears no GPU.
            self.cleared = [gpu.uuid for gpu in self._place.suspect] if measured.facts and not found else []
            return None
        return Failure(TRY_AGAIN, HARDWARE, None, "%s: %s" % (BEFORE_TRAINING, "; ".join(refusing)), measured.lines)

    def _report(self, found: Sequence[health.Finding], facts: Mapping[str, Any], seconds: float) -> None:
        for finding in found:
            log("health: %s%s" % (finding.reason, "; training does not start on this host" if finding.refuses else ""))
        findings = [finding._asdict() for finding in found]
        emit(progress_line("health", host=self._place.host, mode=self._mode, seconds=round(seconds, 1), findings=findings, **facts))


def gate_of(attempt: Attempt, quick: bool) -> HealthGate:
    """The health check of this host; `quick`: without a measurement, because the other hosts wait."""
    cluster, job = attempt.cluster, attempt.job
    efa_needed = job.efa == "required" and len(cluster.training_hosts) > 1
    gpus = int(attempt.hardware.get("gpus") or 0)
    own, known = [Gpu(*gpu) for gpu in attempt.hardware.get("gpuIds", [])], job.raw.get("knownGpus") or {}
    bad = [gpu for gpu in own if gpu.uuid in known.get("bad", ())]
    if (suspect := [gpu for gpu in own if gpu.uuid in known.get("suspect", ())]) and job.health_check == "quick":
        log("health: full check, because earlier jobs have reported GPU %s" % ", ".join(str(gpu.index) for gpu in suspect))
    mode = "full" if suspect and job.health_check != "off" else job.health_check
    mode = "quick" if quick and mode == "full" else mode
    # A spare host is checked when it takes the place of another, perhaps days later.
    early = None if cluster.idle else attempt.early
    place = health.Place(cluster.current_host, cluster.instance_type, attempt.devices, efa_needed, bad, suspect)
    # The measurement runs in subprocesses, so that the driver holds no GPU memory and does not import PyTorch.
    setup = Setup(sys.executable, attempt.environ, attempt.folder, gpus)
    return HealthGate(mode, place, Tools(answer_of, lambda stopped: measure(setup, stopped), health.tuning(setup.environ)), early)
