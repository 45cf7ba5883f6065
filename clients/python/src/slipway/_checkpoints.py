"""Committed checkpoints of a run, read from its prefix."""

from __future__ import annotations

import json
import re
from typing import Any, TypedDict, Union, cast

from botocore.exceptions import BotoCoreError, ClientError

from ._service_errors import service_error
from .types import CheckpointOrigin

_MARKER = re.compile(r"^step-([0-9]{1,12})/COMMITTED\.json$")
#: The code of a run writes markers, of any size and number; the command line has the same limits.
_MAX_BYTES, _MAX_MARKERS, _MAX_TEXT = 8 << 20, 10_000, 4096


class Checkpoint(TypedDict):
    """One COMMITTED.json, and whether all that it lists is there."""

    step: int
    attempt: Union[int, None]
    uri: str
    savedAt: Union[str, None]
    objects: int
    sizeBytes: int
    worldSize: Union[int, None]
    isComplete: bool
    #: What its COMMITTED.json says of where it came from.
    origin: Union[CheckpointOrigin, None]


def committed_checkpoints(client: Any, descriptor: dict[str, Any], run_id: str) -> list[Checkpoint]:
    """By step, from one listing and one read each."""
    bucket = descriptor["checkpointBucket"]
    prefix = f"runs/{descriptor['team']}/{run_id}/"
    try:
        sizes = _sizes_below(client, bucket, prefix)
        markers = [(int(match[1]), name) for name, size in sizes.items() if (match := _MARKER.match(name)) and size <= _MAX_BYTES]
        newest = [name for _, name in sorted(markers)[-_MAX_MARKERS:]]
        found = [_checkpoint(name, _read(client, bucket, prefix + name), f"s3://{bucket}/{prefix}", sizes) for name in newest]
    except (BotoCoreError, ClientError) as error:
        raise service_error(f"listing s3://{bucket}/{prefix}", error) from error
    return sorted((each for each in found if each is not None), key=lambda each: each["step"])


def _sizes_below(client: Any, bucket: str, prefix: str) -> dict[str, int]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return {item["Key"][len(prefix) :]: item["Size"] for page in pages for item in page.get("Contents", [])}


def _read(client: Any, bucket: str, key: str) -> str:
    return str(client.get_object(Bucket=bucket, Key=key)["Body"].read(_MAX_BYTES).decode(errors="replace"))


def _checkpoint(name: str, text: str, place: str, sizes: dict[str, int]) -> Checkpoint | None:
    """A marker that cannot be read makes no checkpoint."""
    folder = name.rpartition("/")[0] + "/"
    try:
        marker = json.loads(text)
        objects = [(str(item["key"]), int(item["bytes"])) for item in marker["objects"]]
        step = int(marker["step"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return Checkpoint(
        step=step,
        attempt=_number(marker.get("attempt")),
        uri=place + folder,
        savedAt=_text(marker.get("savedAt")),
        objects=len(objects),
        sizeBytes=sum(size for _, size in objects),
        worldSize=_number(marker.get("worldSize")),
        isComplete=all(sizes.get(folder + key) == size for key, size in objects),
        origin=checkpoint_origin(place + folder, text),
    )


def checkpoint_origin(uri: str, marker: str) -> CheckpointOrigin | None:
    """What a COMMITTED.json says of its checkpoint; None where it is none."""
    try:
        fields = json.loads(marker)
    except (ValueError, RecursionError):
        return None
    step = _number(fields.get("step")) if isinstance(fields, dict) else None
    if step is None:
        return None
    data = fields.get("data") if isinstance(fields.get("data"), dict) else {}
    found = {
        "uri": uri if uri.endswith("/") else f"{uri}/",
        **{key: _text(fields.get(key)) for key in ("runId", "savedAt", "configHash", "codeDigest", "imageUri")},
        **{key: _number(fields.get(key)) for key in ("attempt", "tokens")},
        "step": step,
        "dataDigest": _text(data.get("digest")),
        **{key: _number(data.get(key)) for key in ("seed", "nextSample")},
    }
    return cast(CheckpointOrigin, found)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_TEXT else None


def _number(value: object) -> Any:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
