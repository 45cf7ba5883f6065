"""A build specification, and how its commands run.

https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html. Each command is a separate script. Variables and the working
directory carry over to the next command; functions and shell options do not, and the documentation does not say that they would:
https://github.com/aws/aws-cdk/issues/26694. A failed phase ends the build with `on-failure: ABORT`; without it, a failed install or
pre_build skips build, and post_build runs after a failed build:
https://docs.aws.amazon.com/codebuild/latest/userguide/view-build-details-phases.html
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

PHASES = ("install", "pre_build", "build", "post_build")

#: Runs a command in this shell and writes what carries over. `set -a`: a variable that is only assigned carries over too.
RUNNER = 'set -a; . "$1"; status=$?; set +a; env -0 > "$2.env"; pwd > "$2.cwd"; exit $status'


class BuildFailed(Exception):
    """A phase failed; the text is what BatchGetBuilds returns as the context of the phase."""


@dataclass
class Phase:
    """Commands of one phase."""

    name: str
    commands: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    aborts: bool = False


@dataclass
class Buildspec:
    """A parsed build specification."""

    phases: list[Phase]
    variables: dict[str, str]
    shell: str


def parse(text: str) -> Buildspec:
    """Parses a build specification. Raises BuildFailed for one that CodeBuild would reject (YAML_FILE_ERROR)."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BuildFailed(f"YAML_FILE_ERROR: {error}")
    if not isinstance(content, dict) or str(content.get("version")) not in ("0.1", "0.2") or not isinstance(content.get("phases"), dict):
        raise BuildFailed("YAML_FILE_ERROR: version and phases must be there")
    if unknown := set(content["phases"]) - set(PHASES):
        raise BuildFailed(f"YAML_FILE_ERROR: unknown phases {', '.join(sorted(unknown))}")
    phases = [phase_of(name, content["phases"][name] or {}) for name in PHASES if name in content["phases"]]
    env = content.get("env") or {}
    variables = {key: str(value) for key, value in (env.get("variables") or {}).items()}
    return Buildspec(phases, variables, "bash" if env.get("shell") == "bash" else "sh")


def phase_of(name: str, content: dict) -> Phase:
    commands = [str(command) for command in content.get("commands") or []]
    return Phase(name, commands, [str(command) for command in content.get("finally") or []], content.get("on-failure") == "ABORT")


class Shell:
    """Runs commands one after the other, each in a separate process."""

    def __init__(self, program: str, folder: Path, environment: dict[str, str], state: Path, emit: Callable[[str], None]):
        self.program, self.folder, self.environment, self.state, self.emit = program, folder, environment, state, emit
        self.running: subprocess.Popen | None = None

    def run(self, command: str) -> None:
        """Runs one command. Raises BuildFailed when it fails."""
        script = self.state.with_suffix(".sh")
        script.write_text(command + "\n", encoding="utf-8")
        self.emit(f"Running command {command}")
        self.running = subprocess.Popen(
            [self.program, "-c", RUNNER, self.program, str(script), str(self.state)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        for line in self.running.stdout or ():
            self.emit(line.rstrip("\n"))
        if status := self.running.wait():
            raise BuildFailed(f"COMMAND_EXECUTION_ERROR: Error while executing command: {command}. Reason: exit status {status}")
        self.carry_over()

    def carry_over(self) -> None:
        entries = self.state.with_suffix(".env").read_bytes().decode("utf-8", "replace").split("\0")
        self.environment = dict(entry.split("=", 1) for entry in entries if "=" in entry)
        self.folder = Path(os.fsdecode(self.state.with_suffix(".cwd").read_bytes()).rstrip("\n"))
