"""The control plane's request that the attempt saves and leaves before its end (docs/reference/runtime.md)."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Callable, Optional

from slipway_s3 import S3Client, S3Error, parse_uri

INTERVAL_SECONDS = 30.0
#: S3 answers 403 for an object that is not there where the role may not list the place.
NOT_THERE = (403, 404)


class HandOverWatch:
    """Looks for the request from a thread of its own; once it is there, writes it to `target`, where the ranks look."""

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
        #: Whether the request has come.
        self.asked = False

    def start(self) -> None:
        """Removes what an earlier start of the container left, and begins to watch in a thread."""
        # The service may start a container again on the same disk.
        if self._target.exists():
            self._target.unlink()
        self._thread.start()

    def stop(self) -> None:
        """Ends the watch without waiting for it."""
        self._stopped.set()

    def look(self) -> bool:
        """One look. An answer that cannot be read is said once: training must not end because of it."""
        try:
            found = self._request()
        except Exception as error:  # Whatever went wrong, the thread must live on and look again.
            if not self._complained:
                self._log("whether to hand over could not be read: %s" % error)
                self._complained = True
            return False
        if found is None:
            return False
        self._target.write_text(found + "\n", encoding="utf-8")
        self.asked = True
        self._on_request(found)
        return True

    def _request(self) -> Optional[str]:
        """Why the attempt should exit; None if there is no request."""
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
        while not self.look() and not self._stopped.wait(self._interval):
            pass
