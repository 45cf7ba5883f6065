"""Final weights of a run to a place of their own, with a card and, where asked for, a version in the model registry: `slipway publish`."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from ._card_lines import card_lines
from ._display import size_text
from ._lineage import Reader, folder_at, lineage_of, text_in
from ._plain_text import plain_line
from ._report import described_jobs
from ._service_errors import service_error
from ._waiting import ENDED
from ._weights import Place, WeightFile, copy_weights, names, objects_below, weight_files
from .errors import Refused, ServiceError, UsageError
from .types import Lineage, LogLine, Published, Status

#: Name of the record that lies beside published weights, and those of cards.
_RECORD, _CARDS = "slipway.json", ("README.md", "MODEL_CARD.md")
_GROUP = re.compile(r"(?=.{1,63}\Z)[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}\Z")
_IMAGE = re.compile(r"\S{1,255}\Z")
_WEIGHTS_FIX = "let the training write /opt/ml/model (export-weights: true in code.arguments of the built-in trainer)"


@dataclass(frozen=True)
class Wanted:
    """What a publish is asked for, in the words of its options."""

    to: str | None = None
    registry: str | None = None
    inference_image: str | None = None
    overwrite: bool = False


@dataclass(frozen=True)
class Source:
    """Where a run is read and its weights are written."""

    reader: Reader
    sagemaker: Any
    run_id: str
    progress: bool = True

    def report(self, text: str) -> None:
        """A line for people."""
        if self.progress:
            print(plain_line(text), file=sys.stderr)


def publish(source: Source, wanted: Wanted, status_of: Any, lines_of: Any) -> Published:
    """Copies, writes the card, registers. `status_of()` and `lines_of(status)` read the run.

    Raises UsageError for a place or a group that cannot be, Refused for a run without weights or that is not over, and ServiceError.
    """
    check_registration(source.reader.descriptor, wanted)
    to = _destination(source, wanted.to)
    if wanted.registry is not None:
        _require_region(source, to)
    status: Status = status_of()
    if status["state"] not in ENDED:
        raise _refused(f"must be over, got {status['state']}; slipway status {source.run_id} --wait says when it is")
    lines = _lines(lines_of, status)
    jobs = described_jobs(source.sagemaker, status)
    files = _trained_weights(source, status)
    before = _require_free(source, to, files, wanted.overwrite)
    weights = {"uri": to.uri, "files": names(files)}
    lineage = lineage_of(replace(source.reader, known=status), source.run_id)
    fields = {"weights": weights, "lines": lines, "jobs": jobs.get("value"), "lineage": lineage}
    # Not `call`, which leaves out what is None.
    card = source.reader.control.ask({"action": "card", "runId": source.run_id, **fields})
    _copy_all(source, files, to)
    at = _write_card(source, to, {"card": card, "weights": weights, "lineage": lineage}, None if wanted.overwrite else before)
    arn = _register(source, wanted, weights, card["registryCard"]) if wanted.registry is not None else None
    found = {"runId": source.run_id, **weights, "card": at, "modelPackageArn": arn}
    return cast(Published, found)


def _refused(message: str) -> Refused:
    return Refused([{"rule": "publish", "level": "error", "path": "run", "message": f"run: {message}"}])


def _lines(lines_of: Any, status: Status) -> list[dict[str, Any]] | None:
    """None where the log may not be read: the card then has no losses."""
    try:
        found: list[LogLine] = list(lines_of(status))
    except (ServiceError, Refused):
        return None
    return card_lines(found)


def check_registration(descriptor: Mapping[str, Any], wanted: Wanted) -> None:
    """Raises UsageError where a group or an image cannot be, or one of them is missing."""
    group, image = wanted.registry, wanted.inference_image
    if group is None and image is None:
        return
    place = f"{descriptor['name']}-{descriptor['team']}-llama"
    issues = []
    if group is None or not _GROUP.match(group):
        issues.append(
            "--registry: must be the name of a model package group, 1 to 63 letters, digits and hyphens, "
            f"got {'nothing' if group is None else group}; researchers may write to names such as {place}"
        )
    if image is None or not _IMAGE.match(image):
        issues.append(
            f"--inference-image: must be the image that serves the model, got {'nothing' if image is None else image}; "
            "the registry needs one, and the image of the training does not serve"
        )
    if issues:
        raise UsageError("\n".join(issues))


def _destination(source: Source, given: str | None) -> Place:
    bucket, team = (str(source.reader.descriptor[key]) for key in ("dataBucket", "team"))
    own = f"s3://{bucket}/teams/{team}/models/{source.run_id}/"
    folder = folder_at(given if given is not None else own)
    if folder is None or folder[1] == "":
        raise UsageError(f"--to: must be s3://bucket/prefix/, got {given}; leave it out for {own}")
    key = source.reader.descriptor.get("teamKeyArn")
    return Place(*folder, key_arn=str(key) if key and folder[0] == bucket else None)


def _require_region(source: Source, to: Place) -> None:
    """The registry takes weights of its own region alone; a region that S3 does not tell is left to the service."""
    descriptor = source.reader.descriptor
    if to.bucket in (descriptor[key] for key in ("dataBucket", "checkpointBucket", "artifactBucket")):
        return
    region = bucket_region(source.reader.s3, to.bucket)
    if region is not None and region != descriptor["region"]:
        raise UsageError(
            f"--to: must be a bucket of {descriptor['region']} for a version in the registry, got {to.bucket} of {region}; "
            "name a bucket there, or leave --registry out"
        )


def bucket_region(client: Any, bucket: str) -> str | None:
    """Region of a bucket, which S3 also returns with a denial. None if S3 does not return it."""
    try:
        answer = client.head_bucket(Bucket=bucket)
    except ClientError as error:
        answer = error.response
    except BotoCoreError:
        return None
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return cast("str | None", answer.get("BucketRegion") or headers.get("x-amz-bucket-region"))


def _trained_weights(source: Source, status: Status) -> list[WeightFile]:
    """What the newest job left in /opt/ml/model."""
    name = next((one["trainingJobName"] for one in reversed(status["attempts"]) if one["status"] != ""), None)
    if name is None:
        raise _refused(f"must have a job; {_WEIGHTS_FIX}")
    try:
        job = source.sagemaker.describe_training_job(TrainingJobName=name)
    except (BotoCoreError, ClientError) as error:
        raise service_error(f"describing {name}", error) from error
    at = job.get("ModelArtifacts", {}).get("S3ModelArtifacts")
    files = weight_files(source.reader.s3, at) if at else []
    if not files:
        raise _refused(f"must have left weights, got none at {at or 'an unknown place'}; {_WEIGHTS_FIX}")
    return files


def _require_free(source: Source, to: Place, files: list[WeightFile], overwrite: bool) -> str | None:
    """Weights of another run stay, and so do files that these would not replace. Returns the record of an earlier publish of the run."""
    s3 = source.reader.s3
    text = text_in(s3, to.bucket, to.prefix + _RECORD)
    found = re.search(r'"runId": *"([^"]+)"', text or "")
    other = found[1] if found else None
    if text is not None and other == source.run_id:
        return text
    if text is not None and not overwrite:
        raise UsageError(
            f"--to: must be free, got the weights of {other or 'another run'} at {to.uri}; name another prefix, or add --overwrite"
        )
    written = {*(file.name for file in files), *_CARDS, _RECORD}
    keys = (key[len(to.prefix) :] for key, _ in objects_below(s3, to.bucket, to.prefix))
    strange = [name for name in keys if name not in written]
    if strange:
        more = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
        raise UsageError(
            f"--to: must contain no files that these weights do not replace, got {', '.join(strange[:3])}{more} at {to.uri}; "
            "delete them, or name another prefix"
        )
    if text is not None:
        # Until the copy is complete the place holds files of both runs.
        _write(s3, to, _RECORD, _json({"schema": 1, "runId": source.run_id, "weights": None, "lineage": None}))
    return None


def _copy_all(source: Source, files: list[WeightFile], to: Place) -> None:
    """One after the other. Ctrl-C says how many are complete and leaves no incomplete upload."""
    copied = 0
    try:
        for file in files:
            source.report(f"copying {copied + 1} of {len(files)}: {file.name}, {size_text(file.bytes)}")
            copy_weights(source.reader.s3, file, to)
            copied += 1
    except KeyboardInterrupt:
        source.report(f"interrupted: {copied} of {len(files)} files are at {to.uri}, without their card; the same call finishes it")
        raise


def _write_card(source: Source, to: Place, what: Mapping[str, Any], before: str | None) -> str:
    """The card, and last the record: without it nothing was published. A card that people have edited since `before` stays."""
    s3, name, text = source.reader.s3, str(what["card"]["file"]), str(what["card"]["card"])
    there = None if before is None else text_in(s3, to.bucket, to.prefix + name)
    is_edited = there is not None and _digest(there) not in (before or "")
    if is_edited:
        source.report(f"{to.uri}{name}: was edited and stays; --overwrite replaces it")
    else:
        _write(s3, to, name, text)
    record = {"schema": 1, "runId": source.run_id, "weights": what["weights"], "lineage": cast(Lineage, what["lineage"])}
    _write(s3, to, _RECORD, _json({**record, "cardSha256": None if is_edited else _digest(text)}))
    return f"{to.uri}{name}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _json(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def _write(client: Any, to: Place, name: str, text: str) -> None:
    target = to.target(name)
    kind = "text/markdown; charset=utf-8" if name.endswith(".md") else "application/json"
    try:
        client.put_object(**target, Body=text.encode(), ContentType=kind)
    except (BotoCoreError, ClientError) as error:
        raise service_error(f"writing s3://{to.bucket}/{target['Key']}", error) from error


def _register(source: Source, wanted: Wanted, weights: Mapping[str, Any], content: str) -> str:
    """A version that waits for its approval; where it fails, what was published stays and is named."""
    client, descriptor, group = source.sagemaker, source.reader.descriptor, str(wanted.registry)
    tags = {"slipway:environment": descriptor["name"], "slipway:team": descriptor["team"]}
    doing = f"creating the model package group {group}"
    try:
        try:
            # A version takes the tags of its group and may have none of its own.
            client.create_model_package_group(ModelPackageGroupName=group, Tags=[{"Key": key, "Value": tags[key]} for key in tags])
        except ClientError as error:
            if not re.search("already exists", str(error), re.IGNORECASE):
                raise
        doing = f"registering a version in {group}"
        request = model_package_request(group, str(wanted.inference_image), source.run_id, weights, content)
        return str(client.create_model_package(**request)["ModelPackageArn"])
    except (BotoCoreError, ClientError) as error:
        source.report(f"{source.run_id}: published at {weights['uri']}, not registered; the same call registers it")
        raise service_error(doing, error) from error


def model_package_request(group: str, image: str, run_id: str, weights: Mapping[str, Any], content: str) -> dict[str, Any]:
    """A version of a group: weights where they were published, the image that serves them, the card."""
    files = weights["files"]
    if len(files) == 1 and files[0]["name"].endswith(".tar.gz"):
        data = {"S3Uri": weights["uri"] + files[0]["name"], "S3DataType": "S3Object", "CompressionType": "Gzip"}
    else:
        data = {"S3Uri": weights["uri"], "S3DataType": "S3Prefix", "CompressionType": "None"}
    return {
        "ModelPackageGroupName": group,
        "ModelPackageDescription": f"Weights of the run {run_id}, published by slipway",
        "InferenceSpecification": {"Containers": [{"Image": image, "ModelDataSource": {"S3DataSource": data}}]},
        "ModelApprovalStatus": "PendingManualApproval",
        "ModelCard": {"ModelCardContent": content, "ModelCardStatus": "Draft"},
        # The same weights, image and card are one version, however often it is asked for.
        "ClientToken": _digest("\n".join([group, image, weights["uri"], content]))[:36],
    }
