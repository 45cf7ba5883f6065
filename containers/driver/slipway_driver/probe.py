"""An all-reduce benchmark before training, enabled with SLIPWAY_PROBE_SECONDS, which shows whether the network reaches its expected speed.

It never ends a job, and it runs only on hosts that have passed the health check. The result is written to the log, a `probe` event and
efa.json.
"""

from __future__ import annotations

import shutil
import threading
import time
from typing import Any, Callable, Dict, Mapping, Optional

from slipway_driver.attempt import PROBE_PORT_OFFSET, PROBE_VARIABLE, Attempt, new_state_folder
from slipway_driver.expected_bandwidth import ALARM_SHARE, EXPECTED, line_rate_gbps
from slipway_driver.launchers import launched
from slipway_driver.log import emit, log
from slipway_driver.output_lines import STATE
from slipway_driver.progress import parse_event, progress_line
from slipway_driver.supervisor import Supervisor

#: Allowance for imports, rendezvous and NCCL initialization, in addition to the probe's own time.
EXTRA_SECONDS = 600.0


def judged(event: Mapping[str, Any], instance_type: str) -> Dict[str, Any]:
    """The probe's result with the expected values of the instance type; None for unknown values."""
    expected, rate, got = EXPECTED.get(instance_type), line_rate_gbps(instance_type), float(event["busBandwidthGBps"])
    found: Dict[str, Any] = {"busBandwidthGBps": got, "expectedGBps": expected.bus_gbps if expected else None}
    found["lineRatePercent"] = round(100 * got / rate, 1) if rate else None
    if expected:
        found["expectedFrom"] = expected.source
    return found


def verdict_line(found: Mapping[str, Any]) -> str:
    """The result as one line for the log."""
    got, expected = found["busBandwidthGBps"], found["expectedGBps"]
    text = "probe: all_reduce at %.2f GB/s bus bandwidth" % got
    if found["lineRatePercent"] is not None:
        text += ", %.0f %% of the line rate" % found["lineRatePercent"]
    if expected is None:
        return text + "; there is no reference value for this instance type"
    if got < ALARM_SHARE * expected:
        return text + "; LOW: %.0f GB/s were measured elsewhere. See the efa verdict, the security group and NCCL's lines" % expected
    return text + "; %.0f GB/s were measured elsewhere" % expected


class Probe:
    """The probe of one host."""

    def __init__(self, attempt: Attempt, end_requested: Callable[[], Optional[str]]) -> None:
        self._attempt, self._end_requested = attempt, end_requested
        #: The failure class of another host that has ended the probe; None if none has.
        self.requested: Optional[str] = None
        self._seconds = float(attempt.environ.get(PROBE_VARIABLE) or 0)
        self._stopped = threading.Event()
        self._event: Optional[Dict[str, Any]] = None

    def stop(self) -> None:
        """Called on SIGTERM: ends the probe."""
        self._stopped.set()

    def run(self) -> Optional[Dict[str, Any]]:
        """Runs the probe. The result on the first host; None on others, without a request, on SIGTERM or on failure."""
        attempt = self._attempt
        if self._seconds <= 0 or attempt.probe_command_of is None or self._stopped.is_set():
            return None
        environ = dict(attempt.environ, MASTER_PORT=str(int(attempt.environ["MASTER_PORT"]) + PROBE_PORT_OFFSET))
        state = new_state_folder()
        log("probe: all_reduce for %g s" % self._seconds)
        supervisor = Supervisor(
            launched(attempt.probe_command_of(state), environ, attempt.folder), state, attempt.local_ranks, self._on_line
        )
        deadline = time.monotonic() + self._seconds + EXTRA_SECONDS

        def each_poll() -> None:
            self.requested = self.requested or self._end_requested()
            if self.requested or self._stopped.is_set() or time.monotonic() > deadline:
                supervisor.kill()

        try:
            code = supervisor.wait(each_poll)
        finally:
            shutil.rmtree(str(state), ignore_errors=True)
        return self._result(code)

    def _on_line(self, line: str, kind: str) -> None:
        event, _ = parse_event(line)
        if event is not None and event["event"] == "probe":
            self._event = event
        elif kind != STATE:
            emit(line)

    def _result(self, code: int) -> Optional[Dict[str, Any]]:
        if self._event is None:
            if self.requested:
                log("probe: ended, because the ranks of another host do not start: %s" % self.requested)
            elif code != 0:
                log("probe: exited with code %d and without a result; training starts anyway" % code)
            return None
        found = judged(self._event, self._attempt.cluster.instance_type)
        log(verdict_line(found))
        emit(progress_line(**dict(self._event, **found)))
        return dict(self._event, **found)
