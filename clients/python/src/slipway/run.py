"""One run."""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, Union, cast

from ._checkpoints import Checkpoint, committed_checkpoints
from ._control import Control
from ._display import progress_line
from ._metrics import Step, steps_of
from ._service_errors import client_of, has_no_credentials
from ._views import CheckpointsView, StatusView, TimelineView, chart_svg
from .errors import ServiceError, UsageError
from .types import Event, LogLine, Status, StatusConfiguration

if TYPE_CHECKING:
    import pandas

#: States of a run that is over.
_ENDED = ("completed", "failed", "stopped")
#: Failed calls in a row after which waiting and following give up; the run itself goes on.
_PATIENCE = 10
_FOLLOW_SECONDS = 2.0
_EVENT_PAGE = 200

T = TypeVar("T")


def _patiently(call: Callable[[], T], seconds: float) -> T:
    """Repeats a call while the service fails. Credentials that have expired do not come back without the person who waits."""
    for _ in range(_PATIENCE - 1):
        try:
            return call()
        except ServiceError as error:
            if has_no_credentials(error.__cause__):
                raise
            time.sleep(seconds)
    return call()


#: Hosts send their lines in batches, so that a line may arrive after newer ones of another host.
_LATE_MS = 60_000


class Run:
    """A run of the team: a handle that remembers nothing but the id. Made by Environment.launch and Environment.run."""

    def __init__(self, run_id: str, control: Control, session: Any, descriptor: dict[str, Any], region: str) -> None:
        self.id = run_id
        self._control = control
        self._session = session
        self._descriptor = descriptor
        self._region = region

    def __repr__(self) -> str:
        return f"Run('{self.id}')"

    def _repr_html_(self) -> str:
        losses = [(step["step"], step["loss"]) for step in self._steps() if step.get("loss") is not None]
        return StatusView(self.status())._repr_html_() + chart_svg([("loss", losses)], "step", "loss")

    def status(self) -> Status:
        """State, attempts, step, loss, goodput and spend."""
        return self._status()

    def _status(self, timeline: bool = False, configuration: bool = False) -> Status:
        answer = self._control.call("status", runId=self.id, timeline=timeline, configuration=configuration)
        return cast(Status, StatusView(_without_ok(answer)))

    def stop(self) -> None:
        """Asks the run to save a checkpoint and end."""
        self._control.call("stop", runId=self.id)

    def resume(self) -> None:
        """Continues the run from its newest committed checkpoint."""
        self._control.call("resume", runId=self.id)

    def release(self) -> dict[str, Any]:
        """Ends the warm pool that the last job of the run left. Returns what `slipway stop --release-pool --json` prints."""
        return _without_ok(self._control.call("release", runId=self.id))

    def note(self, text: str) -> None:
        """Remembers what a person wants to find the run by, in place of the note before; Environment.runs(search=...) finds it."""
        self._control.call("note", runId=self.id, text=text)

    def configuration(self) -> StatusConfiguration:
        """What the run was launched with: its options with defaults, and the digests of code, driver and image."""
        answer = self._control.call("status", runId=self.id, configuration=True)
        if "configuration" not in answer:
            raise ServiceError(f"{self.id}: must have an intent in the run table, got none; launch it again")
        return cast(StatusConfiguration, answer["configuration"])

    def wait(self, progress: bool = True, poll: float = 10) -> Status:
        """Waits until the run has ended, and returns its last status; a line for each change goes to stderr.

        `poll` is in seconds. Interrupting it does not stop the run.
        """
        printed = ""
        while True:
            status = _patiently(self.status, poll)
            line = progress_line(status)
            if progress and line != printed:
                print(line, file=sys.stderr)
            printed = line
            if status["state"] in _ENDED:
                return status
            time.sleep(poll)

    def logs(
        self,
        follow: bool = False,
        progress_only: bool = False,
        *,
        host: int | None = None,
        since: datetime.datetime | None = None,
    ) -> Iterator[LogLine]:
        """Lines of all attempts and hosts in the order of time; with `follow` until the run has ended.

        `host` is a number from 1 (2 for algo-2); `since` (with a time zone) leaves out older lines.
        """
        query = {"progressOnly": progress_only, "host": host, "since": None if since is None else _milliseconds(since)}
        seen: set[str] = set()
        closed: set[int] = set()
        is_first = True

        def observe() -> tuple[Status, list[tuple[str, LogLine]]]:
            status, now = self.status(), time.time() * 1000
            numbered = [(attempt.get("number", place + 1), attempt) for place, attempt in enumerate(status["attempts"])]
            open_ones = {number: attempt.get("endedAt") for number, attempt in numbered if number not in closed}
            found = [line for number in open_ones for line in self._attempt_log(number, query)]
            # The last lines of an attempt arrive after its end.
            closed.update(number for number, end in open_ones.items() if end and _milliseconds(_time(end)) + 2 * _LATE_MS < now)
            return status, found

        while True:
            # A failure of the first observation is final: it is the caller's, not that of a moment.
            status, found = observe() if is_first else _patiently(observe, _FOLLOW_SECONDS)
            is_first = False
            fresh = sorted((line for line in found if line[0] not in seen), key=lambda line: line[1]["at"])
            for key, line in fresh:
                seen.add(key)
                yield line
            if fresh:
                query["since"] = max(query["since"] or 0, _milliseconds(_time(fresh[-1][1]["at"])) - _LATE_MS)
            if not follow or status["state"] in _ENDED:
                return
            time.sleep(_FOLLOW_SECONDS)

    def _attempt_log(self, attempt: int, query: dict[str, Any]) -> Iterator[tuple[str, LogLine]]:
        token: str | None = None
        while True:
            page = self._control.call("logs", runId=self.id, attempt=attempt, nextToken=token, **query)
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
        events = TimelineView()
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
        client = client_of(self._session, "s3", self._region)
        return CheckpointsView(committed_checkpoints(client, self._descriptor, self.id))

    def report(self, path: str) -> None:
        """Writes the page of `slipway report --html`: timeline, loss, throughput, goodput, EFA verdict and spend."""
        from ._report import write_report

        client = client_of(self._session, "sagemaker", self._region)
        status = self._status(timeline=True, configuration=True)
        write_report(path, status, self._report_sources(), client, self._descriptor)

    def _report_sources(self) -> dict[str, Any]:
        return {"lines": list(self.logs(progress_only=True)), "checkpoints": self.checkpoints()}


def _without_ok(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "ok"}


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def _milliseconds(since: datetime.datetime) -> int:
    if since.tzinfo is None:
        raise UsageError(f"since: must have a time zone, got {since}; give tzinfo, for example datetime.timezone.utc")
    return int(since.timestamp() * 1000)
