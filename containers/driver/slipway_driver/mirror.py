"""A spare host's copy of the newest checkpoint in S3. It is complete, because the host that it may replace is not known in advance.

The files are stored next to their digests in the folder of the trainer's local copies (SLIPWAY_LOCAL_COPIES). The trainer reads files that
are missing or incomplete from S3.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any, List, Mapping, Optional

from slipway_driver.attempt import Attempt
from slipway_driver.background import Repeated
from slipway_driver.log import log
from slipway_driver.newest_checkpoint import newest_checkpoint
from slipway_s3 import MIN_FREE_BYTES, S3Client, join_uri, parse_uri

POLL_SECONDS = 60.0
#: Number of parallel downloads, and size of one range request.
STREAMS, PIECE_BYTES = 8, 64 << 20
COMMITTED = "COMMITTED.json"
_STEP = re.compile(r"^step-[0-9]{1,12}$")


class Mirror(Repeated):
    """Copies the newest checkpoint below `uri` to `root` and deletes older copies. It is only an optimization: no error may end the spare
    host. A stop keeps complete files and cancels a download in progress."""

    def __init__(self, uri: str, root: Path, client: Optional[S3Client] = None) -> None:
        super().__init__(POLL_SECONDS, "the newest checkpoint could not be copied", log)
        self._uri, self._root, self._client = uri, root, client or S3Client()
        self._done = ""

    def work(self) -> bool:
        self.update()
        return False

    def update(self) -> None:
        """Copies the newest checkpoint, unless it is already copied or does not fit on the disk."""
        newest = newest_checkpoint(self._uri, self._client)
        if not newest or newest == self._done:
            return
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
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(STREAMS) as pool:
            whole: List[bool] = list(pool.map(lambda entry: self._copy(bucket, prefix, folder, entry), objects))
        if all(whole):
            self._done = newest
            log("copied %s (%d objects, %.1f GiB)" % (newest, len(objects), size / 2**30))

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
