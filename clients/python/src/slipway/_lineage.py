"""From a run or a checkpoint to everything that it was made from, as `slipway status --lineage` finds it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from ._checkpoints import checkpoint_origin, committed_checkpoints
from ._control import Control
from ._service_errors import service_error
from .errors import Refused, ServiceError, UsageError
from .types import Lineage, LineageCheckpoint, LineageRunsItem, LineageRunsItemParentsItem

_MAX_RUNS = 16
_FOLDER = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?\Z", re.DOTALL)
_RUN = re.compile(r"s3://[^/]+/runs/[^/]+/([^/]+)/")
_STEP = re.compile(r"/step-([0-9]+)/?\Z")


@dataclass(frozen=True)
class Reader:
    """What lineage is read from: control, S3 and the descriptor; `known` is a whole status that is not read again."""

    control: Control
    s3: Any
    descriptor: dict[str, Any]
    known: Mapping[str, Any] | None = None


def lineage_of(reader: Reader, of: str) -> Lineage:
    """The document of `slipway status --lineage --json`."""
    run_id, checkpoint, published = _wanted_at(reader, of) if of.startswith("s3://") else (of, None, None)
    try:
        return _follow_from(reader, of, run_id, checkpoint)
    except Refused as refusal:
        if published is None:
            raise
        # The record of a run may be gone before the weights are, and other environments have weights too.
        note = f"{run_id}: shown as in slipway.json: {_reason(refusal)}"
        return {"of": of, "checkpoint": checkpoint, "runs": published["runs"], "notes": [*published["notes"], note]}


def _reason(refusal: Refused) -> str:
    return refusal.issues[0]["message"] if refusal.issues else "refused"


def _follow_from(reader: Reader, of: str, run_id: str, checkpoint: LineageCheckpoint | None) -> Lineage:
    notes: list[str] = []
    run, checkpoint = _read_one(reader, run_id, checkpoint, notes)
    runs, waiting = [run], _parent_runs(run)
    while waiting:
        next_id, uri = waiting.pop(0)
        if any(known["runId"] == next_id for known in runs):
            continue
        if len(runs) == _MAX_RUNS:
            why = f"not followed, because at most {_MAX_RUNS} runs are shown"
            notes.append(f"{next_id}: {why}; run slipway status {next_id} --lineage to continue from there")
            break
        try:
            found, _ = _read_one(reader, next_id, None if uri is None else _checkpoint_at(reader.s3, uri), notes)
        except Refused as refusal:
            notes.append(f"{next_id}: not followed: {_reason(refusal)}")
        except ServiceError as error:
            notes.append(f"{next_id}: not followed: {error}")
        else:
            runs.append(found)
            waiting += _parent_runs(found)
    return {"of": of, "checkpoint": checkpoint, "runs": runs, "notes": notes}


def _parent_runs(run: LineageRunsItem) -> list[tuple[str, str | None]]:
    return [
        (parent["runId"], parent["source"] if parent["kind"] == "checkpoint" and parent["step"] is not None else None)
        for parent in run["parents"]
        if parent["runId"] is not None and parent["runId"] != run["runId"]
    ]


def _read_one(
    reader: Reader, run_id: str, checkpoint: LineageCheckpoint | None, notes: list[str]
) -> tuple[LineageRunsItem, LineageCheckpoint | None]:
    known = reader.known
    if known is None or known["runId"] != run_id:
        known = reader.control.call("status", runId=run_id, timeline=True, configuration=True)
    status: Mapping[str, Any] = known
    if "configuration" not in status:
        notes.append(f"{run_id}: the launcher did not return its configuration")
    newest = checkpoint or _newest_checkpoint(reader, run_id, notes)
    return lineage_run(status, newest, {**_places(reader.descriptor), "runId": run_id}), newest


def _places(descriptor: Mapping[str, Any]) -> dict[str, str]:
    places = {name: descriptor.get(name) for name in ("dataBucket", "checkpointBucket", "team")}
    file_system: Mapping[str, Any] = next(iter((descriptor.get("fileSystems") or {}).values()), {})
    places["fsx"] = file_system.get("id") or file_system.get("fsxLustre")
    return {name: str(value) for name, value in places.items() if value is not None}


def _newest_checkpoint(reader: Reader, run_id: str, notes: list[str]) -> LineageCheckpoint | None:
    try:
        listed = [one for one in committed_checkpoints(reader.s3, reader.descriptor, run_id) if one["isComplete"]]
    except ServiceError as error:
        notes.append(f"{run_id}: its checkpoints were not read: {error}")
        return None
    if not listed:
        notes.append(f"{run_id}: has no complete checkpoint, so digests of data and configuration are not known")
        return None
    return listed[-1]["origin"]


def lineage_run(status: Mapping[str, Any], checkpoint: LineageCheckpoint | None, places: Mapping[str, str]) -> LineageRunsItem:
    """What a run was made from, by its configuration, its timeline and its checkpoint; None = not known, or it has none."""
    configuration = status.get("configuration") or {}
    spec = configuration.get("spec") or {}
    known: Mapping[str, Any] = checkpoint or {}
    last = known.get("attempt")
    return {
        "runId": status["runId"],
        "name": status["name"],
        "team": status["team"],
        "state": status["state"],
        "configHash": known.get("configHash"),
        "code": {"source": _text_at(spec, "code", "source"), "sha256": _first(configuration.get("codeSha256"), known.get("codeDigest"))},
        "driverHash": configuration.get("driverHash"),
        "image": _first(known.get("imageUri"), _image(spec, configuration)),
        "data": {"channels": _channels(spec.get("data"), places), "digest": known.get("dataDigest")},
        "parents": _parents(spec, places, _resumes(status.get("timeline") or [], last)),
    }


def _image(spec: Mapping[str, Any], configuration: Mapping[str, Any]) -> str | None:
    """Of an image that AWS publishes, its kind and version: the launcher keeps no digest of it."""
    uri, kind, version = (_text_at(spec, "image", key) for key in ("uri", "kind", "version"))
    if uri is not None:
        return uri
    if kind in (None, "environment"):
        return cast("str | None", configuration.get("trainingImageUri"))
    return " ".join(part for part in (kind, version) if part is not None)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _parents(
    spec: Mapping[str, Any], places: Mapping[str, str], resumed: list[LineageRunsItemParentsItem]
) -> list[LineageRunsItemParentsItem]:
    start, weights = _text_at(spec, "checkpoints", "startFrom"), _text_at(spec, "model", "weights")
    named = any(parent["by"] == "attempt 1" for parent in resumed)
    return [
        *([] if weights is None else [_parent("weights", _filled(weights, places), "model.weights")]),
        *([] if start is None or named else [_parent("checkpoint", _filled(start, places), "checkpoints.startFrom")]),
        *resumed,
    ]


def _parent(kind: Any, address: str, by: str) -> LineageRunsItemParentsItem:
    run, step = _RUN.match(f"{address}/"), _STEP.search(address)
    run_id = (run[1] if run else None) if address.startswith("s3://") else address
    return {"kind": kind, "source": address, "runId": run_id, "step": int(step[1]) if step else None, "by": by}


def _resumes(timeline: Sequence[Mapping[str, Any]], last: int | None) -> list[LineageRunsItemParentsItem]:
    found: list[LineageRunsItemParentsItem] = []
    intended = [line for line in timeline if line["what"] == "attempt-intended"]
    for number, line in enumerate(intended, 1):
        resumed = line["evidence"].get("resumeFrom")
        if (last is not None and number > last) or not isinstance(resumed, Mapping) or not isinstance(resumed.get("uri"), str):
            continue
        parent = _parent("checkpoint", resumed["uri"], f"attempt {number}")
        step = resumed.get("step")
        if isinstance(step, (int, float)) and not isinstance(step, bool):
            parent["step"] = cast(int, step)
        found.append(parent)
    return found


def _channels(data: object, places: Mapping[str, str]) -> list[Any]:
    channels = [one for one in data if isinstance(one, Mapping)] if isinstance(data, list) else []
    return [
        {"channel": one["channel"], "source": _filled(one["s3"], places) if isinstance(one.get("s3"), str) else _file_system(one)}
        for one in channels
        if isinstance(one.get("channel"), str)
    ]


def _file_system(channel: Mapping[str, Any]) -> str:
    nowhere: tuple[str, dict[str, str]] = ("", {})
    kind, place = next(((key, value) for key, value in channel.items() if key in ("fsxLustre", "efs")), nowhere)
    return f"{kind} {place.get('fileSystemId', '')}{place.get('directoryPath', '')}".strip()


def _filled(text: str, places: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: places.get(found[1], found[0]), text, flags=re.ASCII)


def _text_at(spec: Mapping[str, Any], section: str, key: str) -> str | None:
    value = (spec.get(section) or {}).get(key)
    return value if isinstance(value, str) else None


def folder_at(address: str) -> tuple[str, str] | None:
    """Bucket and prefix of an S3 address, with a slash at the end of the prefix; None where it is none."""
    found = _FOLDER.match(address)
    if found is None:
        return None
    prefix = found[2] or ""
    return found[1], prefix if prefix == "" or prefix.endswith("/") else f"{prefix}/"


def text_in(client: Any, bucket: str, key: str) -> str | None:
    """Text of an object; None where there is none. Raises ServiceError where it may not be read."""
    try:
        return str(client.get_object(Bucket=bucket, Key=key)["Body"].read().decode())
    except client.exceptions.NoSuchKey:
        return None
    except (BotoCoreError, ClientError) as error:
        raise service_error(f"reading s3://{bucket}/{key}", error) from error


def _checkpoint_at(client: Any, uri: str) -> LineageCheckpoint | None:
    folder = folder_at(uri)
    text = None if folder is None else text_in(client, folder[0], f"{folder[1]}COMMITTED.json")
    return None if text is None else checkpoint_origin(uri, text)


def _wanted_at(reader: Reader, address: str) -> tuple[str, LineageCheckpoint | None, Lineage | None]:
    folder = folder_at(address)
    if folder is None:
        raise UsageError(f"lineage: must be a run id or s3://bucket/prefix/, got {address}; check the URI")
    checkpoint = _checkpoint_at(reader.s3, address)
    if checkpoint is not None and checkpoint["runId"] is not None:
        return checkpoint["runId"], checkpoint, None
    published = text_in(reader.s3, folder[0], f"{folder[1]}slipway.json")
    try:
        lineage = json.loads(published)["lineage"] if published is not None else None
        if lineage:
            found: Lineage = {"of": address, "checkpoint": lineage["checkpoint"], "runs": lineage["runs"], "notes": lineage["notes"]}
            return str(found["runs"][0]["runId"]), found["checkpoint"], found
    except (ValueError, KeyError, IndexError, TypeError):
        pass
    raise UsageError(
        f"lineage: must be a folder with COMMITTED.json of a run or with slipway.json, got {address}; "
        "slipway report RUN --json lists the checkpoints of a run"
    )


def lineage_rows(run: LineageRunsItem) -> list[tuple[str, str]]:
    """Name and value of everything that a run was made from; what is not known is a dash."""
    code = [part for part in (run["code"]["source"], run["code"]["sha256"]) if part is not None]
    return [
        ("configuration", _shown(run["configHash"])),
        ("code", "  ".join(code) or "-"),
        ("driver", _shown(run["driverHash"])),
        ("image", _shown(run["image"])),
        *((f"data {channel['channel']}", channel["source"]) for channel in run["data"]["channels"]),
        ("data digest", _shown(run["data"]["digest"])),
        *(("from", f"{parent['source']}{_step_text(parent)} ({parent['by']})") for parent in run["parents"]),
    ]


def _shown(value: str | None) -> str:
    return "-" if value is None else value


def _step_text(parent: LineageRunsItemParentsItem) -> str:
    step = parent["step"]
    return "" if step is None or parent["source"].rstrip("/").endswith(f"step-{step}") else f" at step {step}"
