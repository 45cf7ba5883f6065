"""Watches for the control plane's request that the attempt saves a checkpoint and exits early (docs/reference/runtime.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Callable, Optional

from slipway_driver.attempt import Attempt
from slipway_driver.background import Repeated
from slipway_driver.log import log
from slipway_s3 import S3Client, S3Error, parse_uri

INTERVAL_SECONDS = 30.0
#: S3 returns 403 for a missing object if the role has no permission to list the prefix.
NOT_THERE = (403, 404)


class HandOverWatch(Repeated):
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
        super().__init__(interval_seconds, "the hand-over request could not be read, or not be passed on", log)
        self._bucket, self._key = parse_uri(uri)
        self._attempt, self._target, self._on_request, self._client = attempt, target, on_request, client or S3Client()

    def start(self) -> None:
        """Removes the file of a previous container start and starts the thread."""
        # The service may start a container again on the same disk.
        if self._target.exists():
            self._target.unlink()
        super().start()

    def work(self) -> bool:
        """Checks once for the request; True if it was received."""
        found = self._request()
        if found is not None:
            self._target.write_text(found + "\n", encoding="utf-8")
            self._on_request(found)
        return found is not None

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


def hand_over_of(attempt: Attempt, on_request: Callable[[str], None]) -> Optional[HandOverWatch]:
    """The watch of the first host, which confirms the request, and of the host of rank 0, whose ranks look for the file; else None."""
    uri, cluster = attempt.job.hand_over_uri, attempt.cluster
    if not uri or not (cluster.is_first or cluster.has_rank_0):
        return None
    seconds = float(attempt.environ.get("SLIPWAY_HAND_OVER_SECONDS") or INTERVAL_SECONDS)
    return HandOverWatch(uri, attempt.job.attempt, attempt.paths.hand_over, log, on_request, interval_seconds=seconds)
