"""The page of a run, drawn by the report's own script: the page holds the sources and the script, and needs no network and no Node."""

from __future__ import annotations

import datetime
import json
from importlib import resources
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from .errors import UsageError
from .types import Status

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}: run report</title></head><body>
<script id="slipway-sources" type="application/json">{sources}</script>
<script>{script}</script>
</body></html>
"""


def write_report(path: str, status: Status, read: dict[str, Any], sagemaker: Any, descriptor: dict[str, Any]) -> None:
    """Writes the page. Raises UsageError where the file cannot be written or the package was built without the script."""
    script = resources.files("slipway").joinpath("report.js")
    if not script.is_file():
        raise UsageError("report: must have report.js beside the package, got none; install the wheel that npm run pack builds")
    sources = {
        "status": status,
        "environment": descriptor["name"],
        "region": descriptor["region"],
        "readAt": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "lines": {"value": [{key: line[key] for key in ("at", "attempt", "message")} for line in read["lines"]]},
        "checkpoints": {"value": read["checkpoints"]},
        "jobs": described_jobs(sagemaker, status),
        "plan": {},
        **({"configuration": status["configuration"]} if "configuration" in status else {}),
    }
    # Nothing in the data may close the element that holds it.
    text = json.dumps(sources).replace("<", "\\u003c")
    page = _PAGE.format(title=status["runId"], sources=text, script=script.read_text(encoding="utf-8"))
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: must be a file that can be written, got {error.strerror}; specify another file") from error


def described_jobs(client: Any, status: Status) -> dict[str, Any]:
    """`value`: what DescribeTrainingJob says of each job, or `why` it was not told."""
    names = [attempt["trainingJobName"] for attempt in status["attempts"] if attempt["status"] != ""]
    try:
        return {"value": [_facts(client.describe_training_job(TrainingJobName=name)) for name in names]}
    except (BotoCoreError, ClientError) as error:
        return {"why": str(error)}


def _facts(job: dict[str, Any]) -> dict[str, Any]:
    config = job.get("ResourceConfig", {})
    groups = config.get("InstanceGroups") or [
        {
            "InstanceType": config.get("SelectedInstanceType") or config.get("InstanceType"),
            "InstanceCount": config.get("SelectedInstanceCount") or config.get("InstanceCount"),
        }
    ]
    instances = [{"instanceType": g["InstanceType"], "count": g["InstanceCount"]} for g in groups if g["InstanceType"]]
    return {
        "trainingJobName": job["TrainingJobName"],
        "instances": instances,
        "isSpot": job.get("EnableManagedSpotTraining", False),
        "billableSeconds": job.get("BillableTimeInSeconds"),
    }
