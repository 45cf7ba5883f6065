"""Finds the newest checkpoint with a COMMITTED.json, for a restart in place. The trainer verifies it before loading."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Iterable, Optional

from slipway_s3 import S3Client, join_uri, parse_uri

_MARKER = re.compile(r"^step-([0-9]{1,12})/COMMITTED\.json$")


def newest_step(names: Iterable[str]) -> Optional[int]:
    """The highest step with a marker among `names`, which are relative to the checkpoint folder."""
    steps = [int(found.group(1)) for found in map(_MARKER.match, names) if found]
    return max(steps) if steps else None


def newest_checkpoint(uri: str, client: "S3Client | None" = None) -> str:
    """URI or path of the newest checkpoint; '' if there is none."""
    if not uri:
        return ""
    if uri.startswith("s3://"):
        bucket, prefix = parse_uri(uri.rstrip("/") + "/")
        step = newest_step(found.key[len(prefix) :] for found in (client or S3Client()).list(bucket, prefix))
    else:
        root = Path(uri)
        step = newest_step(path.relative_to(root).as_posix() for path in root.glob("step-*/COMMITTED.json"))
    return "" if step is None else join_uri(uri, "step-%d" % step)
