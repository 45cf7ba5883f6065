"""Writes the heartbeat object. Its age, not that of the log, determines whether a job is alive (docs/reference/runtime.md)."""

from __future__ import annotations

import json
import time
from typing import Any, Callable, Dict, Optional

from slipway_driver.attempt import Attempt
from slipway_driver.background import Repeated
from slipway_driver.log import log
from slipway_driver.newest_checkpoint import noticing
from slipway_driver.tables import HEARTBEAT_SECONDS
from slipway_s3 import S3Client, parse_uri


class Heartbeat(Repeated):
    """Writes `{at, uptimeSeconds, attempt, step, phase, hosts, starts, ...}` every minute from a thread, until `stop`."""

    def __init__(
        self,
        uri: str,
        facts: Callable[[], Dict[str, Any]],
        log: Callable[[str], None],
        client: "S3Client | None" = None,
        interval_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        super().__init__(interval_seconds, "heartbeat could not be written", log)
        self._bucket, self._key = parse_uri(uri)
        self._facts, self._client, self._began = facts, client or S3Client(), time.monotonic()

    def stop(self) -> None:
        """Stops the thread, waits for it up to 5 s, and writes a last heartbeat unless the previous write failed."""
        super().stop()
        self._thread.join(timeout=5.0)
        if not self._complained and not self._thread.is_alive():
            # The final state: a job may end long after its last regular heartbeat, or before the second one.
            self.check()

    def work(self) -> bool:
        """Writes one heartbeat, none where there are no facts."""
        if known := self._facts():
            facts = dict(known, at=int(time.time()), uptimeSeconds=round(time.monotonic() - self._began, 1))
            self._client.put(self._bucket, self._key, json.dumps(facts, separators=(",", ":")).encode(), "application/json")
        return False


def heartbeat_of(attempt: Attempt, facts: Callable[[], Dict[str, Any]]) -> Optional[Heartbeat]:
    """The heartbeat of the attempt; None on all hosts except the first."""
    uri = attempt.job.heartbeat_uri
    if not uri or not attempt.cluster.is_first:
        return None
    return Heartbeat(uri, noticing(attempt, facts, log), log)
