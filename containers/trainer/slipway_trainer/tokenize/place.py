"""Paths of the tokenization step, in a processing job or a training job."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway_trainer.exits import InvalidRun

PLUMBING = ("driver", "job", "code")


@dataclass(frozen=True)
class Place:
    """This host's input and output. `output_uri`: where the service copies the output, '' if unknown."""

    input: Path
    output: Path
    output_uri: str
    host: int
    hosts: int
    #: Whether the service has already divided the input files among the hosts.
    sharded: bool


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def output_uri(config: Path) -> str:
    """Where the service copies the output of a processing job, from its folder of configuration; '' outside of one."""
    outputs = (_read(config / "processingjobconfig.json").get("ProcessingOutputConfig") or {}).get("Outputs", [])
    return str((outputs[0].get("S3Output") or {}).get("S3Uri", "")) if outputs else ""


def find_place(base: Path, channel: str, environ: Mapping[str, str]) -> Place:
    """The paths of this host. Raises InvalidRun if the channel does not exist."""
    processing = _read(base / "config" / "processingjobconfig.json")
    config = base / "config" if processing else base / "input" / "config"
    data = base / "processing" / "input" if processing else base / "input" / "data"
    resources = _read(config / "resourceconfig.json")
    hosts = sorted(resources.get("hosts") or ["algo-1"])
    current = str(resources.get("current_host", hosts[0]))
    names = sorted(entry.name for entry in data.iterdir() if entry.is_dir()) if data.is_dir() else []
    own = [name for name in names if name not in PLUMBING]
    chosen = channel or (own[0] if len(own) == 1 else "")
    if chosen not in names:
        must = f"must name an input of the job ({', '.join(own) or 'it has none'}), got {channel or 'nothing'}"
        raise InvalidRun(f"code.arguments.data-channel: {must}; correct the name, or add the input")
    if processing:
        inputs = {entry.get("InputName"): entry.get("S3Input") or {} for entry in processing.get("ProcessingInputs", [])}
        kind = str(inputs.get(chosen, {}).get("S3DataDistributionType", ""))
        output, uri = base / "processing" / "output", output_uri(config)
    else:
        described = _read(config / "inputdataconfig.json").get(chosen) or {}
        kind, output, uri = str(described.get("S3DistributionType", "")), Path(environ.get("SM_MODEL_DIR", base / "model")), ""
    return Place(data / chosen, output, uri, hosts.index(current), len(hosts), sharded=kind == "ShardedByS3Key")
