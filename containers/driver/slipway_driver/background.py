"""Work beside the training: the heartbeat, whose age and not that of the log determines whether a job is alive, the control plane's request
that the attempt saves a checkpoint and exits early (docs/reference/runtime.md), and a spare host's copy of the newest checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional

from slipway_driver.attempt import Attempt
from slipway_driver.log import log
from slipway_driver.newest_checkpoint import newest_checkpoint, noticing
from slipway_driver.tables import HEARTBEAT_SECONDS
from slipway_s3 import MIN_FREE_BYTES, S3Client, S3Error, join_uri, parse_uri


class Repeated:
    """Calls `work` at once and then every `seconds` from a daemon thread, until it returns True or `stop` is called. Of several errors in a
    row, the first one is logged, after `trouble`."""

    seconds, trouble = 60.0, ""

    def __init__(self, uri: str, client: Optional[S3Client]) -> None:
        self._bucket, self._key = parse_uri(uri)
        self._client = client or S3Client()
        self._stopped, self._awake = threading.Event(), threading.Event()
        self._complained = False
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    def work(self) -> bool:
        """Does the work once. Returns whether there is nothing left to do."""
        raise NotImplementedError

    def check(self) -> bool:
        """Does the work once, without raising its errors. Returns whether there is nothing left to do."""
        try:
            done = self.work()
            self._complained = False
            return done
        except Exception as error:  # The thread must survive any error and try again.
            if not self._complained:
                self._complained = True
                log("%s: %s" % (self.trouble, error))
            return False

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def soon(self) -> None:
        """Does the work now instead of at the end of the interval."""
        self._awake.set()

    def stop(self) -> None:
        """Stops the thread without waiting for it."""
        self._stopped.set()
        self._awake.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._awake.clear()
            if self.check() or self._stopped.is_set():
                return
            self._awake.wait(self.seconds)


class Heartbeat(Repeated):
    """Writes `{at, uptimeSeconds, attempt, step, phase, hosts, starts, ...}` every minute from a thread, until `stop`."""

    seconds, trouble = HEARTBEAT_SECONDS, "heartbeat could not be written"

    def __init__(self, uri: str, facts: Callable[[], Dict[str, Any]], client: Optional[S3Client] = None) -> None:
        super().__init__(uri, client)
        self._facts, self._began = facts, time.monotonic()

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
    return Heartbeat(uri, noticing(attempt, facts))


#: S3 returns 403 for a missing object if the role has no permission to list the prefix.
NOT_THERE = (403, 404)


class HandOverWatch(Repeated):
    """Polls for the request in a thread and copies it to `target`, the file that the ranks check."""

    seconds, trouble = 30.0, "the hand-over request could not be read, or not be passed on"

    def __init__(self, uri: str, attempt: int, target: Path, on_request: Callable[[str], None], client: Optional[S3Client] = None) -> None:
        super().__init__(uri, client)
        self._attempt, self._target, self._on_request = attempt, target, on_request

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
    watch = HandOverWatch(uri, attempt.job.attempt, attempt.paths.hand_over, on_request)
    watch.seconds = float(attempt.environ.get("SLIPWAY_HAND_OVER_SECONDS") or watch.seconds)
    return watch


#: Number of parallel downloads, and size of one range request.
STREAMS, PIECE_BYTES = 8, 64 << 20
COMMITTED = "COMMITTED.json"
_STEP = re.compile(r"^step-[0-9]{1,12}$")


class Mirror(Repeated):
    """Copies the newest checkpoint below `uri` to `root` and deletes older copies. It is only an optimization: no error may end the spare
    host. A stop keeps complete files and cancels a download in progress."""

    trouble = "the newest checkpoint could not be copied"

    def __init__(self, uri: str, root: Path, client: Optional[S3Client] = None) -> None:
        super().__init__(uri, client)
        self._uri, self._root, self._done = uri, root, ""

    def work(self) -> bool:
        """Copies the newest checkpoint, unless it is already copied or does not fit on the disk."""
        newest = newest_checkpoint(self._uri, self._client)
        if not newest or newest == self._done:
            return False
        bucket, prefix = parse_uri(newest)
        record = json.loads(self._client.get(bucket, join_uri(prefix, COMMITTED)).decode("utf-8"))
        # Incomplete copies of objects without a digest could not be detected, so these objects are read from S3.
        objects = [entry for entry in record.get("objects", []) if entry.get("sha256")]
        folder = self._root / newest.rsplit("/", 1)[-1]
        self._root.mkdir(parents=True, exist_ok=True)
        for other in self._root.iterdir():
            if _STEP.match(other.name) and other != folder:
                shutil.rmtree(str(other), ignore_errors=True)
        size = sum(int(entry["bytes"]) for entry in objects)
        if shutil.disk_usage(str(self._root)).free < size + MIN_FREE_BYTES:
            log("%s is not copied: there is not enough free disk space for its %.1f GiB" % (newest, size / 2**30))
            self._done = newest
            return False
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(STREAMS) as pool:
            whole: List[bool] = list(pool.map(lambda entry: self._copy(bucket, prefix, folder, entry), objects))
        if all(whole):
            self._done = newest
            log("copied %s (%d objects, %.1f GiB)" % (newest, len(objects), size / 2**30))
        return False

    def _copy(self, bucket: str, prefix: str, folder: Path, entry: Mapping[str, Any]) -> bool:
        target = folder / str(entry["key"])
        digest = target.with_name(target.name + ".sha256")
        if self._stopped.is_set() or folder.resolve() not in target.resolve().parents:
            return False
        if digest.exists():
            return True
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(target.name + ".tmp")
        found, size = hashlib.sha256(), int(entry["bytes"])
        with temporary.open("wb") as handle:
            for first in range(0, size, PIECE_BYTES):
                if self._stopped.is_set():
                    return False
                piece = self._client.get(bucket, join_uri(prefix, str(entry["key"])), first, min(PIECE_BYTES, size - first))
                found.update(piece)
                handle.write(piece)
        if found.hexdigest() != entry["sha256"]:
            raise ValueError("%s: its content does not match the digest in COMMITTED.json" % entry["key"])
        temporary.replace(target)
        digest.write_text(str(entry["sha256"]), encoding="ascii")
        return True


def mirror_of(attempt: Attempt) -> Optional[Mirror]:
    """The mirror of an attempt; None if the trainer keeps no local copies (user code, or checkpoints on a shared file system)."""
    uri = attempt.environ["SLIPWAY_CHECKPOINT_URI"]
    if attempt.job.builtin_module is None or not uri.startswith("s3://"):
        return None
    return Mirror(uri, Path(attempt.environ["SLIPWAY_LOCAL_COPIES"]))
