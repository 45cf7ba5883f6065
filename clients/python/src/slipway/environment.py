"""A deployed environment as a team sees it."""

from __future__ import annotations

import datetime
import hashlib
import http.client
import json
import os
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from ._archive import Archive, archive_folder
from ._control import Control
from ._display import IssueList, PlanView
from ._run_source import Overrides, RunSource, folder_of, listed, own_options, read, set_options, text_of
from ._service_errors import client_of, new_session, region_of, service_error
from ._views import RunsView
from .errors import Refused, ServiceError, UsageError
from .run import Run
from .types import Issue, Status

_UPLOAD_TRIES = 3
_UPLOAD_SECONDS = 600


class Environment:
    """An environment and team: `research`, `research/nlp`, or the path of a descriptor that ends in .json.

    `region` defaults to that of the session, then to AWS_REGION, `session` to a new boto3 session. Raises UsageError where there is no
    such environment, and ServiceError where it cannot be read.
    """

    def __init__(self, name: str, region: str | None = None, session: boto3.session.Session | None = None) -> None:
        self._session: Any = session or new_session()
        self.descriptor = _descriptor(name, region, self._session)
        self.region: str = region or str(self.descriptor["region"])
        self._control = Control(self._client("lambda"), self.descriptor)

    def __repr__(self) -> str:
        return f"Environment('{self.name}/{self.team}', region='{self.region}')"

    @property
    def name(self) -> str:
        """Name of the environment."""
        return str(self.descriptor["name"])

    @property
    def team(self) -> str:
        """Team that the caller acts for."""
        return str(self.descriptor["team"])

    def validate(self, run: RunSource, set: Overrides | None = None) -> list[Issue]:
        """Every finding of schema and rules, in the environment; an error among them would refuse the launch."""
        answer = self._control.call("validate", runFile=text_of(run), overrides=set_options(set))
        return IssueList(answer["issues"])

    def plan(self, run: RunSource, set: Overrides | None = None) -> PlanView:
        """The numbers of `slipway plan --json`. Raises Refused where the run is not valid or not plannable."""
        answer = self._control.call("plan", runFile=text_of(run), overrides=set_options(set))
        return PlanView(answer["plan"])

    def launch(
        self,
        run: RunSource,
        *,
        code: str | os.PathLike[str] | None = None,
        set: Overrides | None = None,
        accept_unknown_price: bool = False,
        run_id: str | None = None,
        at: datetime.datetime | None = None,
        client_request_id: str | None = None,
        note: str | None = None,
        after: Sequence[str] | None = None,
        preemptible: bool = False,
    ) -> Run:
        """Launches a run and returns it, queued. Raises Refused with the issues.

        `code` is the folder of own code; by default `code.source` of the run file, relative to it. The same `client_request_id` again finds
        the run of the first call instead of launching another one. `at` (with a time zone) is the earliest start. `after` names runs that
        must be completed first, by id or as latest:NAME, in place of those of the file; `preemptible` lets runs of higher priority ask this
        one to make room. `note` is what to find the run by.
        """
        text, overrides = text_of(run), [*set_options(set), *own_options(after, preemptible)]
        archive, code_digest = self._code_of(run, text, overrides, code)
        intent = self._control.call(
            "start",
            runFile=text,
            overrides=overrides,
            code=code_digest,
            clientRequestId=client_request_id or str(uuid.uuid4()),
            runId=run_id,
            startAt=_iso(at),
            note=note,
            acceptsUnknownPrice=accept_unknown_price,
        )
        for upload in intent["uploads"]:
            if archive is None or upload["sha256"] != archive.sha256:
                raise ServiceError(f"uploading {upload['key']}: the launcher requested a digest that was not sent; try again")
            _put(upload, archive.content)
        self._control.call("start", runId=intent["runId"], confirm=True)
        return self.run(str(intent["runId"]))

    def run(self, run_id: str) -> Run:
        """A run of the team by its id; nothing is called until it is asked for something."""
        return Run(run_id, self._control, self._session, self.descriptor, self.region)

    def runs(
        self,
        limit: int = 50,
        *,
        states: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        search: str | None = None,
    ) -> list[Status]:
        """The newest runs of the team, newest first: all, or those in one of `states`, with all of `tags` (`key` or `key=value`), and with
        `search` in id, name, note, reason or a tag, whatever its case."""
        query = {"states": listed(states), "tags": listed(tags), "search": search}
        return RunsView(self._control.call("list", limit=limit, **query)["runs"])

    def _client(self, service: str) -> Any:
        return client_of(self._session, service, self.region)

    def _code_of(
        self, run: RunSource, text: str, overrides: list[str], code: str | os.PathLike[str] | None
    ) -> tuple[Archive | None, dict[str, object] | None]:
        """The archive of a local folder, and the description of the code for `start`."""
        source = os.fspath(code) if code is not None else self._code_source(text, overrides)
        # These words are values of the run file; a folder in `code` may have such a name.
        if source is None or (code is None and source in ("builtin", "builtin-tokenize", "builtin-fetch", "image")):
            return None, None
        if source.startswith("s3://"):
            if source.endswith("/"):
                raise UsageError(
                    f"code.source: must be an archive or a local folder here, got {source}; "
                    "give code= with a folder, or launch with the slipway command, which packs a prefix"
                )
            return None, self._digest_in_s3(self._filled(source))
        folder = Path(source) if code is not None else folder_of(run) / source
        if not folder.is_dir():
            raise UsageError(f"code.source: must be a folder that exists, got {folder}; give code= or correct the file")
        archive = archive_folder(folder)
        return archive, {"sha256": archive.sha256, "bytes": len(archive.content)}

    def _code_source(self, text: str, overrides: list[str]) -> str | None:
        """`code.source`, read by the launcher: the client brings no YAML parser."""
        answer = self._control.call("validate", runFile=text, overrides=overrides)
        if not answer["isValid"]:
            raise Refused(answer["issues"])
        return cast("str | None", answer["codeSource"])

    def _filled(self, uri: str) -> str:
        """The address with the buckets and the team of the environment, as the launcher fills it."""
        for name in ("dataBucket", "checkpointBucket", "team"):
            uri = uri.replace("{%s}" % name, str(self.descriptor.get(name, "")))
        return uri

    def _digest_in_s3(self, source: str) -> dict[str, object]:
        bucket, _, key = source.removeprefix("s3://").partition("/")
        digest, size = hashlib.sha256(), 0
        try:
            for chunk in self._client("s3").get_object(Bucket=bucket, Key=key)["Body"].iter_chunks(1 << 20):
                digest.update(chunk)
                size += len(chunk)
        except (BotoCoreError, ClientError) as error:
            raise service_error(f"reading code.source {source}", error) from error
        return {"sha256": digest.hexdigest(), "bytes": size}


def _descriptor(name: str, region: str | None, session: Any) -> dict[str, Any]:
    if name.endswith(".json"):
        try:
            found = json.loads(read(name))
            if not isinstance(found, dict) or not found.keys() >= {"name", "team", "region"}:
                raise ValueError("no name, team and region")
            return found
        except ValueError as error:
            raise UsageError(f"environment: must be a descriptor in JSON, got {name}: {error}; check the path") from error
    environment, _, team = name.partition("/")
    client = client_of(session, "ssm", region_of(session, region))
    teams = [team] if team else _teams(client, environment)
    if len(teams) != 1:
        known = " or ".join(f"{environment}/{each}" for each in teams)
        raise UsageError(f"environment: must contain one team, got {name}; use {known or 'an environment that is deployed here'}")
    value = _parameter(client, f"/slipway/environments/{environment}/{teams[0]}")
    if value is None:
        raise UsageError(f"environment: must be one that is deployed in {client.meta.region_name}, got {name}; check it")
    return cast("dict[str, Any]", json.loads(value))


def _teams(client: Any, environment: str) -> list[str]:
    return sorted(filter(None, (_parameter(client, f"/slipway/environments/{environment}") or "").split(",")))


def _parameter(client: Any, name: str) -> str | None:
    try:
        return str(client.get_parameter(Name=name)["Parameter"]["Value"])
    except client.exceptions.ParameterNotFound:
        return None
    except (BotoCoreError, ClientError) as error:
        raise service_error(f"reading {name}", error) from error


def _iso(at: datetime.datetime | None) -> str | None:
    """In UTC with milliseconds, as control takes a time."""
    if at is None:
        return None
    return _zoned("at", at).astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _zoned(option: str, at: datetime.datetime) -> datetime.datetime:
    if at.tzinfo is None:
        raise UsageError(f"{option}: must have a time zone, got {at}; give tzinfo, for example datetime.timezone.utc")
    return at


def _put(upload: Mapping[str, Any], content: bytes) -> None:
    """Uploads to a presigned URL. The URL is a credential: only the key is named."""
    failure = ""
    for _ in range(_UPLOAD_TRIES):
        request = urllib.request.Request(upload["url"], data=content, headers=upload["headers"], method="PUT")
        # urllib would add a type that was not signed.
        request.add_unredirected_header("Content-Type", "")
        try:
            with urllib.request.urlopen(request, timeout=_UPLOAD_SECONDS):
                return
        except urllib.error.HTTPError as error:
            failure = f"HTTP {error.code}"
        except (OSError, http.client.HTTPException) as error:
            failure = " ".join(str(getattr(error, "reason", error)).split())
    raise ServiceError(f"uploading {upload['key']}: failed {_UPLOAD_TRIES} times, got {failure}; try again")
