"""Watches for the control plane's request that the attempt saves a checkpoint and exits early (docs/reference/runtime.md)."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Callable, Optional

from slipway_driver.attempt import Attempt
from slipway_driver.log import log
from slipway_s3 import S3Client, S3Error, parse_uri

INTERVAL_SECONDS = 30.0
#: S3 returns 403 for a missing object if the role has no permission to list the prefix.
NOT_THERE = (403, 404)


class HandOverWatch:
    """Polls for the request in a thread and copies it to `target`, the file that the ranks check."""

    def __init__(
        self,
        uri: str,
        attempt: int,
        target: Path,
        log: Callable[[str], None],
        on_request: Callable[[str], None],
        client: "S3Client | None" = None,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._bucket, self._key = parse_uri(uri)
        self._attempt, self._target = attempt, target
        self._log, self._on_request = log, on_request
        self._client = client or S3Client()
        self._interval = interval_seconds
        self._stopped = threading.Event()
        self._complained = False
        self._thread = threading.Thread(target=self._run, name="hand-over", daemon=True)
        #: Whether the request was received.
        self.requested = False

    def start(self) -> None:
        """Removes the file of a previous container start and starts the thread."""
        # The service may start a container again on the same disk.
        if self._target.exists():
            self._target.unlink()
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread without waiting for it."""
        self._stopped.set()

    def check(self) -> bool:
        """Checks once for the request. Errors are logged only once and do not end training."""
        try:
            found = self._request()
            if found is None:
                return False
            self._target.write_text(found + "\n", encoding="utf-8")
        except Exception as error:  # The thread must survive any error and check again.
            if not self._complained:
                self._log("the hand-over request could not be read, or not be passed on: %s" % error)
                self._complained = True
            return False
        self.requested = True
        self._on_request(found)
        return True

    def _request(self) -> Optional[str]:
        """The reason for the hand-over; None if there is no request for this attempt."""
        try:
            raw = json.loads(self._client.get(self._bucket, self._key).decode("utf-8"))
        except S3Error as error:
            if error.status in NOT_THERE:
                return None
            raise
        if not isinstance(raw, dict) or raw.get("action") != "hand-over" or raw.get("attempt") != self._attempt:
            return None
        return str(raw.get("reason") or "asked to hand over")

    def _run(self) -> None:
        while not self.check() and not self._stopped.wait(self._interval):
            pass


def hand_over_of(attempt: Attempt, on_request: Callable[[str], None]) -> Optional[HandOverWatch]:
    """The watch of the attempt: on the first host, which confirms the request, and on the host of rank 0, whose ranks look for the file.
    None on all other hosts."""
    uri, cluster = attempt.job.hand_over_uri, attempt.cluster
    if not uri or not (cluster.is_first or cluster.has_rank_0):
        return None
    seconds = float(attempt.environ.get("SLIPWAY_HAND_OVER_SECONDS") or INTERVAL_SECONDS)
    return HandOverWatch(uri, attempt.job.attempt, attempt.paths.hand_over, log, on_request, interval_seconds=seconds)
