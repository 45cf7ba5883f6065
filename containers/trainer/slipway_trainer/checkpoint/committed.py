"""COMMITTED.json, which marks a checkpoint as complete: its content, the checkpoint from which a start continues, and old checkpoints."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from slipway_trainer.checkpoint.store import Listed, Store, Written, open_store, storage_errors, write_object
from slipway_trainer.exits import CheckpointFailed

MARKER = "COMMITTED.json"
SCHEMA = 1
#: The minimum regardless of `keep`, because the newest checkpoint may turn out to be unreadable.
MIN_KEPT = 2
_STEP = re.compile(r"^step-([0-9]{1,12})/")


@dataclass(frozen=True)
class Committed:
    """A complete checkpoint. `folder` is relative to the store, '' = the store itself; object keys in `record` are relative to the
    folder."""

    store: Store
    folder: str
    record: Mapping[str, Any]

    @property
    def step(self) -> int:
        """The step of its state."""
        return self.record["step"]


@dataclass(frozen=True)
class Rollback:
    """Checkpoints after `to_step` that were written by attempts before `before_attempt` are discarded."""

    to_step: int
    before_attempt: int


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


def commit(store: Store, folder: str, facts: Mapping[str, Any], objects: Sequence[Written], format: str = "dcp") -> None:
    """Writes the marker, which must be the last write of a checkpoint. Object keys are relative to the folder, so that it can be copied."""
    prefix = folder + "/"
    if foreign := [one.name for one in objects if not one.name.startswith(prefix)]:
        raise RuntimeError(f"all ranks must save the step of {folder}, got {foreign[0]}")
    listed = [
        {"key": one.name.removeprefix(prefix), "bytes": one.bytes} | ({"sha256": one.sha256} if one.sha256 else {})
        for one in sorted(objects, key=lambda one: one.name)
    ]
    write_marker(store, folder, {"schema": SCHEMA, **facts, "format": format, "objects": listed})


def write_marker(store: Store, folder: str, record: Mapping[str, Any]) -> None:
    """Writes the content of a marker."""
    write_object(store, f"{folder}/{MARKER}", json.dumps(record, indent=1).encode())


def marked_folders(names: Sequence[str]) -> list[tuple[int, str]]:
    """(step, folder) of every checkpoint with a marker, newest first."""
    steps = [int(found.group(1)) for name in names if (found := _STEP.match(name)) and name == f"step-{int(found.group(1))}/{MARKER}"]
    return [(step, folder_of(step)) for step in sorted(steps, reverse=True)]


def parse_record(data: bytes) -> dict[str, Any] | None:
    """Parses a marker; None if it is invalid."""
    try:
        record = json.loads(data)
        if record["schema"] != SCHEMA or not isinstance(record["step"], int):
            return None
        return record if all("key" in entry and "bytes" in entry for entry in record["objects"]) else None
    except (ValueError, KeyError, TypeError):
        return None


def read_checkpoint(store: Store, folder: str, listed: Sequence[Listed]) -> tuple[Committed | None, str]:
    """The complete checkpoint in a folder, or None and the reason."""
    prefix = f"{folder}/" if folder else ""
    sizes = {entry.name: entry.bytes for entry in listed}
    if prefix + MARKER not in sizes:
        return None, f"{store.uri}/{folder}: has no {MARKER}"
    record = parse_record(store.read(prefix + MARKER))
    if record is None:
        return None, f"{store.uri}/{prefix}{MARKER}: is not a marker that this version can read"
    missing = [entry["key"] for entry in record["objects"] if sizes.get(prefix + entry["key"]) != entry["bytes"]]
    if missing:
        return None, f"{store.uri}/{folder}: {len(missing)} objects are missing or have another size ({', '.join(missing[:3])})"
    return Committed(store, folder, record), ""


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


#: Of what precedes the choice of a checkpoint, which is therefore not blamed.
_no_choice = storage_errors("no checkpoint could be chosen", CheckpointFailed, "check the permissions under checkpoints")


@_no_choice
def find_resume(own: Store | None, resume_from: str, attempt: int) -> tuple[Committed | None, list[str]]:
    """The newest complete checkpoint in the run's own store and in `resume_from`, and the reasons why others were rejected.

    The own store is searched as well, because job.json is outdated when the service restarts a container. `resume_from` may be a checkpoint
    of another run (checkpoints.startFrom); it is used only if the own store has no newer one. If it is an older checkpoint of the own store
    (a rollback), newer ones count only if this attempt wrote them.
    """
    named, committed, complaints = None, None, []
    if resume_from:
        store = open_store(resume_from)
        named, complaint = read_checkpoint(store, "", list(store.list("")))
        complaints += [complaint] if named is None else []
    if own is not None:
        chosen = named.step if named is not None and resume_from.startswith(own.uri + "/") else None

        def objection(record: Mapping[str, Any]) -> str:
            if chosen is None or record["step"] <= chosen or int(record.get("attempt", 0)) >= attempt:
                return ""
            return f"is of attempt {record.get('attempt')} and newer than step {chosen}, from which this attempt must continue"

        committed, rejected = newest_complete(own, objection)
        complaints += rejected
    # The own one first, because max returns the first of equal elements.
    return max(filter(None, (committed, named)), key=lambda found: found.step, default=None), complaints


@_no_choice
def forget_newer(store: Store, rollback: Rollback) -> list[str]:
    """Rolls back: deletes the markers of later checkpoints, so that none of them is found as the newest, and returns the folders. The other
    objects are kept for inspection until the folder is written again.

    Idempotent: later attempts receive the same rollback, and their own checkpoints are kept.
    """
    forgotten = []
    for step, folder in marked_folders([entry.name for entry in store.list("")]):
        if step <= rollback.to_step:
            continue
        record = parse_record(store.read(f"{folder}/{MARKER}"))
        if record is None or int(record.get("attempt", 0)) < rollback.before_attempt:
            store.delete(f"{folder}/{MARKER}")
            print(f"rolled back to step {rollback.to_step}: {folder} no longer counts", flush=True)
            forgotten.append(folder)
    return forgotten


def to_delete(names: Sequence[str], keep: int) -> list[str]:
    """Folders of complete checkpoints beyond the newest `keep`, except the newest MIN_KEPT. Incomplete ones are kept for inspection."""
    return [folder for _step, folder in marked_folders(names)[max(MIN_KEPT, keep) :]]


def delete_old(store: Store, keep: int) -> None:
    """Deletes checkpoints beyond the newest `keep`, the marker first, so that a partly deleted checkpoint does not count as complete."""
    for folder in to_delete([entry.name for entry in store.list("")], keep):
        store.delete(f"{folder}/{MARKER}")
        for entry in list(store.list(folder + "/")):
            store.delete(entry.name)
