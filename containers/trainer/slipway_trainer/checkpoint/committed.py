"""COMMITTED.json, which marks a checkpoint as complete; finding the newest complete checkpoint, and deleting old ones."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from slipway_trainer.checkpoint.store import Listed, Store, Written, write_object

MARKER = "COMMITTED.json"
SCHEMA = 1
#: The minimum regardless of `keep`, because the newest checkpoint may turn out to be unreadable.
MIN_KEPT = 2
_STEP = re.compile(r"^step-([0-9]{1,12})/")


@dataclass(frozen=True)
class Committed:
    """A complete checkpoint. `folder` is relative to the store; object keys in `record` are relative to the folder."""

    folder: str
    step: int
    record: Mapping[str, Any]


def folder_of(step: int) -> str:
    """Name of the folder of a step's checkpoint."""
    return f"step-{step}"


def saved_now() -> dict[str, str]:
    """The field with the time of a save."""
    return {"savedAt": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}


def step_of(uri: str) -> int | None:
    """The step of the checkpoint in a folder, from its name; None if it has another name."""
    found = re.search(r"/step-([0-9]{1,12})/?$", uri)
    return int(found.group(1)) if found else None


def committed_record(facts: Mapping[str, Any], objects: Sequence[Written], folder: str, format: str = "dcp") -> dict[str, Any]:
    """The content of COMMITTED.json. Object keys are relative to the checkpoint's folder, so that the folder can be copied."""
    listed = [_object(written, folder) for written in objects]
    return {"schema": SCHEMA, **facts, "format": format, "objects": sorted(listed, key=lambda entry: entry["key"])}


def _object(written: Written, folder: str) -> dict[str, Any]:
    entry = {"key": written.name.removeprefix(folder + "/"), "bytes": written.bytes}
    return entry | ({"sha256": written.sha256} if written.sha256 else {})


def write_marker(store: Store, folder: str, record: Mapping[str, Any]) -> None:
    """Writes the marker, which must be the last write of a checkpoint."""
    write_object(store, f"{folder}/{MARKER}", json.dumps(record, indent=1).encode())


def marked_folders(names: Sequence[str]) -> list[tuple[int, str]]:
    """(step, folder) of every checkpoint with a marker, newest first."""
    found = []
    for name in names:
        step = _STEP.match(name)
        if step and name == f"{folder_of(int(step.group(1)))}/{MARKER}":
            found.append((int(step.group(1)), folder_of(int(step.group(1)))))
    return sorted(found, reverse=True)


def parse_record(data: bytes) -> dict[str, Any] | None:
    """Parses a marker; None if it is invalid."""
    try:
        record = json.loads(data)
        if record["schema"] != SCHEMA or not isinstance(record["step"], int):
            return None
        return record if all("key" in entry and "bytes" in entry for entry in record["objects"]) else None
    except (ValueError, KeyError, TypeError):
        return None


def missing_objects(record: Mapping[str, Any], folder: str, sizes: Mapping[str, int]) -> list[str]:
    """Keys of the objects in the record that are missing from the store or have another size."""
    prefix = folder + "/" if folder else ""
    return [entry["key"] for entry in record["objects"] if sizes.get(prefix + entry["key"]) != entry["bytes"]]


def read_checkpoint(store: Store, folder: str, listed: Sequence[Listed]) -> tuple[Committed | None, str]:
    """The complete checkpoint in a folder, or None and the reason."""
    name = f"{folder}/{MARKER}" if folder else MARKER
    sizes = {entry.name: entry.bytes for entry in listed}
    if name not in sizes:
        return None, f"{store.uri}/{folder}: has no {MARKER}"
    record = parse_record(store.read(name))
    if record is None:
        return None, f"{store.uri}/{name}: is not a marker that this version can read"
    missing = missing_objects(record, folder, sizes)
    if missing:
        return None, f"{store.uri}/{folder}: {len(missing)} objects are missing or have another size ({', '.join(missing[:3])})"
    return Committed(folder, record["step"], record), ""


def newest_complete(store: Store, objection: Callable[[Mapping[str, Any]], str] = lambda _record: "") -> tuple[Committed | None, list[str]]:
    """The newest complete checkpoint for which `objection` returns an empty string, and the reasons why newer ones were rejected."""
    listed = list(store.list(""))
    complaints = []
    for _step, folder in marked_folders([entry.name for entry in listed]):
        found, complaint = read_checkpoint(store, folder, listed)
        if found is not None:
            objected = objection(found.record)
            if not objected:
                return found, complaints
            complaint = f"{store.uri}/{folder}: {objected}"
        complaints.append(complaint)
    return None, complaints


def to_delete(names: Sequence[str], keep: int) -> list[str]:
    """Folders of complete checkpoints beyond the newest `keep`, except the newest MIN_KEPT. Incomplete ones are kept for inspection."""
    return [folder for _step, folder in marked_folders(names)[max(MIN_KEPT, keep) :]]


def delete_checkpoint(store: Store, folder: str) -> None:
    """Deletes a checkpoint, the marker first, so that a partly deleted checkpoint does not count as complete."""
    store.delete(f"{folder}/{MARKER}")
    for entry in list(store.list(folder + "/")):
        store.delete(entry.name)
