"""One run."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Union, cast

from ._checkpoints import Checkpoint, committed_checkpoints
from ._control import Control
from ._display import progress_line, status_html
from ._metrics import Step, steps_of
from .errors import ServiceError
from .types import Event, LogLine, Status

if TYPE_CHECKING:
    import pandas

_ENDED = ("completed", "failed", "stopped")
#: Failed looks in a row before waiting gives up; the run itself goes on.
_PATIENCE = 10
_FOLLOW_SECONDS = 2.0
_EVENT_PAGE = 200


class Run:
    """A run of the team: a handle that remembers nothing but the id. Made by Environment.launch and Environment.run."""

    def __init__(
        self, run_id: str, control: Control, session: Any, descriptor: dict[str, Any], region: str
    ) -> None:
        self.id = run_id
        self._control = control
        self._session = session
        self._descriptor = descriptor
        self._region = region

    def __repr__(self) -> str:
        return f"Run('{self.id}')"

    def _repr_html_(self) -> str:
        return status_html(self.status(), [step["loss"] for step in self._steps() if step.get("loss") is not None])

    def status(self) -> Status:
        """State, attempts, step, loss, goodput and spend."""
        return self._status()

    def _status(self, timeline: bool = False) -> Status:
        answer = self._control.call("status", runId=self.id, timeline=timeline)
        return cast(Status, {key: value for key, value in answer.items() if key != "ok"})

    def stop(self) -> None:
        """Asks the run to save a checkpoint and end."""
        self._control.call("stop", runId=self.id)

    def resume(self) -> None:
        """Continues the run from its newest committed checkpoint."""
        self._control.call("resume", runId=self.id)

    def wait(self, progress: bool = True, poll: float = 10) -> Status:
        """Waits until the run has ended, and returns its last status; a line for each change goes to stderr.

        `poll` is in seconds. Interrupting it does not stop the run.
        """
        said, failures = "", 0
        while True:
            try:
                status = self.status()
                failures = 0
            except ServiceError:
                failures += 1
                if failures >= _PATIENCE:
                    raise
                time.sleep(poll)
                continue
            line = progress_line(status)
            if progress and line != said:
                print(line, file=sys.stderr)
            said = line
            if status["state"] in _ENDED:
                return status
            time.sleep(poll)

    def logs(self, follow: bool = False, progress_only: bool = False) -> Iterator[LogLine]:
        """Lines of all attempts and hosts in the order of time; with `follow` until the run has ended."""
        seen: set[str] = set()
        while True:
            status = self.status()
            found = [line for i in range(len(status["attempts"])) for line in self._attempt_log(i + 1, progress_only)]
            fresh = sorted((line for line in found if line[0] not in seen), key=lambda line: line[1]["at"])
            for key, line in fresh:
                seen.add(key)
                yield line
            if not follow or status["state"] in _ENDED:
                return
            time.sleep(_FOLLOW_SECONDS)

    def _attempt_log(self, attempt: int, progress_only: bool) -> Iterator[tuple[str, LogLine]]:
        token: str | None = None
        while True:
            page = self._control.call(
                "logs", runId=self.id, attempt=attempt, progressOnly=progress_only, nextToken=token
            )
            for event in page["events"]:
                line = LogLine(at=event["at"], attempt=attempt, host=event["host"], message=event["message"])
                yield event["id"], line
            token = page.get("nextToken")
            if token is None:
                return

    def metrics(self) -> Union[pandas.DataFrame, list[Step]]:
        """Step, loss, tokensPerSecondPerGpu and what else the progress lines have: a frame with pandas, else a list of dicts."""
        steps = self._steps()
        try:
            import pandas
        except ImportError:
            return steps
        return pandas.DataFrame(steps)

    def _steps(self) -> list[Step]:
        return steps_of(self.logs(progress_only=True))

    def timeline(self) -> list[Event]:
        """Decisions, attempts, commits and notices in the order of time."""
        events: list[Event] = []
        after: str | None = None
        while True:
            page = self._control.call("events", runId=self.id, after=after, limit=_EVENT_PAGE)
            lines = [{key: value for key, value in line.items() if key != "cursor"} for line in page["events"]]
            events += cast("list[Event]", lines)
            after = page["next"]
            if after is None:
                return events

    def checkpoints(self) -> list[Checkpoint]:
        """Committed checkpoints in the run's prefix, by step, and whether all their objects are there."""
        client = self._session.client("s3", region_name=self._region)
        return committed_checkpoints(client, self._descriptor, self.id)

    def report(self, path: str) -> None:
        """Writes the page of `slipway report --html`: timeline, loss, throughput, goodput, EFA verdict and spend."""
        from ._report import write_report

        client = self._session.client("sagemaker", region_name=self._region)
        write_report(path, self._status(timeline=True), self._report_sources(), client, self._descriptor)

    def _report_sources(self) -> dict[str, Any]:
        return {"lines": list(self.logs(progress_only=True)), "checkpoints": self.checkpoints()}
