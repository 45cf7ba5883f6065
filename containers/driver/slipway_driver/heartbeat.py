"""Writes the heartbeat object. Its age, not that of the log, determines whether a job is alive (docs/reference/runtime.md)."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Callable, Dict, Optional

from slipway_driver.attempt import Attempt
from slipway_driver.log import log
from slipway_driver.misplaced_checkpoints import noticing
from slipway_s3 import S3Client, parse_uri

INTERVAL_SECONDS = 60.0


class Heartbeat:
    """Writes `{at, uptimeSeconds, attempt, step, phase, hosts, starts, ...}` every minute from a thread, until `stop`."""

    def __init__(
        self,
        uri: str,
        facts: Callable[[], Dict[str, Any]],
        log: Callable[[str], None],
        client: "S3Client | None" = None,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._bucket, self._key = parse_uri(uri)
        self._facts = facts
        self._log = log
        self._client = client or S3Client()
        self._interval = interval_seconds
        self._began = time.monotonic()
        self._stopped = threading.Event()
        self._awake = threading.Event()
        self._complained = False
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def soon(self) -> None:
        """Writes the next heartbeat now instead of at the end of the interval."""
        self._awake.set()

    def stop(self) -> None:
        """Stops the thread, waits for it up to 5 s, and writes a last heartbeat unless the previous write failed."""
        self._stopped.set()
        self._awake.set()
        self._thread.join(timeout=5.0)
        if not self._complained and not self._thread.is_alive():
            # The final state: a job may end long after its last regular heartbeat, or before the second one.
            self.write()

    def write(self) -> None:
        """Writes one heartbeat, none where there are no facts. Write errors are logged only once and do not end training."""
        known = self._facts()
        if not known:
            return
        facts = dict(known, at=int(time.time()), uptimeSeconds=round(time.monotonic() - self._began, 1))
        body = json.dumps(facts, separators=(",", ":")).encode()
        try:
            self._client.put(self._bucket, self._key, body, "application/json")
            self._complained = False
        except Exception as error:  # The thread must survive any error and try again.
            if not self._complained:
                self._log("heartbeat could not be written: %s" % error)
                self._complained = True

    def _run(self) -> None:
        while True:
            self._awake.clear()
            self.write()
            if self._stopped.is_set():
                return
            self._awake.wait(self._interval)
            if self._stopped.is_set():
                return


def heartbeat_of(attempt: Attempt, facts: Callable[[], Dict[str, Any]]) -> Optional[Heartbeat]:
    """The heartbeat of the attempt; None on all hosts except the first."""
    uri = attempt.job.heartbeat_uri
    if not uri or not attempt.cluster.is_first:
        return None
    return Heartbeat(uri, noticing(attempt, facts, log), log)
