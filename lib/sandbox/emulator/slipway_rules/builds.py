"""A CodeBuild build runs its buildspec: each command in a shell, with the role's credentials, its log group and its time limit.

https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html; the environment variables of a build are documented in
https://docs.aws.amazon.com/codebuild/latest/userguide/build-env-ref-env-vars.html. Commands run on this machine, with the substitutes of
slipway_build first on the PATH. MiniStack reports every build as SUCCEEDED immediately, or runs it with Docker.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

from ministack.core.responses import error_response_json, get_region
from ministack.services import codebuild, ecr
from ministack.services.cloudformation import provisioners

from slipway_build import buildspec
from slipway_build.calls import client
from slipway_rules.hooks import wrap
from slipway_sessions import assume

logger = logging.getLogger("slipway.rules")
TOOLS = Path(__file__).parent.parent
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
running: dict[str, RunningBuild] = {}


class RunningBuild:
    """One running build."""

    def __init__(self, build: dict, project: dict):
        self.build, self.project = build, project
        self.folder = Path(tempfile.mkdtemp(prefix="slipway-build-"))
        self.shell: buildspec.Shell | None = None
        self.ended_as: str | None = None
        self.emit = codebuild._log_sink(build)

    def end(self, status: str) -> None:
        """Ends the running command and sets the status of the build."""
        self.ended_as = self.ended_as or status
        process = self.shell.running if self.shell else None
        if process and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)

    def remove(self, **_options) -> None:
        """Called by StopBuild of MiniStack to remove the build's container; ends this build."""
        self.end("STOPPED")

    def run(self) -> None:
        timer = threading.Timer(codebuild._timeout_seconds(self.project), self.end, ["TIMED_OUT"])
        timer.daemon = True
        timer.start()
        try:
            status = self.run_phases()
        except Exception as error:  # what CodeBuild calls a fault: not the build's doing
            logger.exception("build %s", self.build["id"])
            self.emit(f"{type(error).__name__}: {error}")
            status = "FAULT"
        finally:
            timer.cancel()
            shutil.rmtree(self.folder, ignore_errors=True)
            running.pop(self.build["id"], None)
        codebuild._finish_build(self.build, self.ended_as or status)

    def run_phases(self) -> str:
        self.passed("QUEUED")
        self.passed("PROVISIONING")
        try:
            environment = self.environment()
            spec = buildspec.parse(self.source(environment))
        except buildspec.BuildFailed as error:
            return self.failed("DOWNLOAD_SOURCE", error)
        self.passed("DOWNLOAD_SOURCE")
        self.shell = buildspec.Shell(spec.shell, self.folder / "src", {**spec.variables, **environment}, self.folder / "carried", self.emit)
        return self.run_all(spec.phases)

    def run_all(self, phases: list[buildspec.Phase]) -> str:
        status = "SUCCEEDED"
        for phase in phases:
            if status == "FAILED" and phase.name != "post_build":
                continue
            error = self.run_phase(phase)
            if error is None:
                self.passed(phase.name.upper())
                continue
            status = self.failed(phase.name.upper(), error)
            if self.ended_as or phase.aborts or phase.name != "build":
                break
        return status

    def run_phase(self, phase: buildspec.Phase) -> buildspec.BuildFailed | None:
        assert self.shell
        failure = None
        try:
            for command in phase.commands:
                self.shell.run(command)
        except buildspec.BuildFailed as error:
            failure = error
        for command in phase.after if not self.ended_as else []:
            try:
                self.shell.run(command)
            except buildspec.BuildFailed as error:
                failure = failure or error
        return failure

    def passed(self, phase: str) -> None:
        codebuild._record_phase(self.build, phase, "SUCCEEDED")
        self.emit(f"Phase complete: {phase} State: SUCCEEDED")

    def failed(self, phase: str, error: Exception) -> str:
        codebuild._record_phase(self.build, phase, "FAILED")
        code, _, message = str(error).partition(": ")
        self.build["phases"][-1]["contexts"] = [{"statusCode": code, "message": message}]
        self.emit(f"Phase complete: {phase} State: FAILED")
        self.emit(f"Phase context status code: {code} Message: {message}")
        return "FAILED"

    def environment(self) -> dict[str, str]:
        """Environment variables of the build; those of the project take precedence over CodeBuild's own."""
        given = self.project.get("environment") or {}
        credentials = assume(self.project["serviceRole"], "AWSCodeBuild", 3600)
        region = get_region()
        scheme = "https" if os.environ.get("USE_SSL") == "1" else "http"
        return {
            "PATH": f"{self.tools()}:{SYSTEM_PATH}",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_ENDPOINT_URL": f"{scheme}://127.0.0.1:{os.environ['GATEWAY_PORT']}",
            "AWS_ACCESS_KEY_ID": credentials["accessKeyId"],
            "AWS_SECRET_ACCESS_KEY": credentials["secretAccessKey"],
            "AWS_SESSION_TOKEN": credentials["sessionToken"],
            **({"AWS_CA_BUNDLE": os.environ["AWS_CA_BUNDLE"]} if "AWS_CA_BUNDLE" in os.environ else {}),
            "CODEBUILD_BUILD_ID": self.build["id"],
            "CODEBUILD_BUILD_ARN": self.build["arn"],
            "CODEBUILD_SRC_DIR": str(self.folder / "src"),
            "SLIPWAY_DOCKER": "privileged" if given.get("privilegedMode") in (True, "true") else "none",
            **{item["name"]: str(item.get("value", "")) for item in given.get("environmentVariables") or []},
        }

    def tools(self) -> Path:
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        for name in ("aws", "docker"):
            tool = folder / name
            python = shlex.quote(sys.executable)
            tool.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(TOOLS))} exec {python} -B -m slipway_build.{name}_tool "$@"\n')
            tool.chmod(0o755)
        return folder

    def source(self, environment: dict[str, str]) -> str:
        """Unpacks the source into its folder and returns the text of the build specification."""
        (self.folder / "src").mkdir()
        given = self.project.get("source") or {}
        if given.get("type") == "S3":
            self.download(given["location"], environment)
        inline = given.get("buildspec") or ""
        if "\n" in inline or inline.lstrip().startswith("{"):
            return inline
        file = self.folder / "src" / (inline or "buildspec.yml")
        if not file.is_file():
            raise buildspec.BuildFailed(f"YAML_FILE_ERROR: stat {file.name}: no such file or directory")
        return file.read_text(encoding="utf-8")

    def download(self, location: str, environment: dict[str, str]) -> None:
        bucket, _, key = location.removeprefix("arn:aws:s3:::").partition("/")
        try:
            body = client("s3", environment=environment).get_object(Bucket=bucket, Key=key)["Body"].read()
        except Exception as error:
            raise buildspec.BuildFailed(f"CLIENT_ERROR: {error} for primary source")
        archive = self.folder / "source.zip"
        archive.write_bytes(body)
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(self.folder / "src")


def execute(_original, build_id, project):
    build = codebuild._builds.get(build_id)
    if build is not None:
        group = ((project.get("logsConfig") or {}).get("cloudWatchLogs") or {}).get("groupName")
        if group:
            build["logs"]["groupName"] = group
        running[build_id] = RunningBuild(build, project)
        running[build_id].run()


def start(original, data):
    """Applies the overrides of the call, which MiniStack ignores."""
    project = codebuild._projects.get(data.get("projectName", ""))
    overrides = data.get("environmentVariablesOverride") or []
    if project is None or not overrides:
        return original(data)
    names = {item["name"] for item in overrides}
    environment = project.get("environment") or {}
    kept = [item for item in environment.get("environmentVariables") or [] if item["name"] not in names]
    changed = {**project, "environment": {**environment, "environmentVariables": [*kept, *overrides]}}
    codebuild._projects[project["name"]] = changed
    try:
        return original(data)
    finally:
        codebuild._projects[project["name"]] = project


def make_project(original, logical_id, props, stack_name):
    name, attributes = original(logical_id, props, stack_name)
    codebuild._projects[name]["logsConfig"] = provisioners._codebuild_cfn_to_api(props.get("LogsConfig") or {})
    return name, attributes


async def ecr_request(original, method, path, headers, body, query_params):
    """Adds the one call of the image build that MiniStack's ECR does not have."""
    if not headers.get("x-amz-target", "").endswith(".UpdateImageStorageClass"):
        return await original(method, path, headers, body, query_params)
    return update_image_storage_class(json.loads(body))


def update_image_storage_class(data):
    """Restores an image from the archive; here no image is ever archived."""
    wanted = data.get("imageId") or {}
    for image in ecr._images.get(data.get("repositoryName", ""), []):
        if wanted.get("imageTag") in image.get("imageTags", []) or wanted.get("imageDigest") == image["imageDigest"]:
            return ecr.json_response({"repositoryName": data["repositoryName"], "imageId": wanted, "imageStatus": "ACTIVE"})
    return error_response_json("ImageNotFoundException", f"The image with imageId {wanted} does not exist", 400)


def install() -> None:
    codebuild.EXECUTE_BUILDS = True
    wrap(codebuild, "_execute_build", execute)
    wrap(codebuild, "_start_build", start)
    wrap(codebuild, "_container_for_build", lambda _original, build_id: running.get(build_id))
    wrap(ecr, "handle_request", ecr_request)
    wrap(provisioners, "_codebuild_project_create", make_project)
