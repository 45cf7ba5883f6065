"""What the logs of a job say after a fault, and when."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

POLL_SECONDS = 0.01
#: Events that only rank 0 prints.
OF_RANK_0 = ("step", "phase", "resume", "memory-save")


class Seen(NamedTuple):
    """A progress event and when it was read, in seconds of the monotonic clock."""

    at: float
    event: Mapping[str, Any]

    def named(self, kind: str, **fields: Any) -> bool:
        """Whether this is an event of that kind with these fields."""
        return self.event["event"] == kind and all(self.event.get(name) == value for name, value in fields.items())


class Timeline:
    """Follows logs that other processes write. `first`: that of the first host, from which all events count; `others`: those of the hosts
    that may get rank 0, from which only its events count; `ended`: whether the process of the first host has ended."""

    def __init__(self, first: Path, ended: Callable[[], bool], others: Sequence[Path] = ()) -> None:
        self._first, self._ended = first, ended
        #: How far each log was read, and the line that was not complete.
        self._logs: dict[Path, tuple[int, bytes]] = dict.fromkeys([first, *others], (0, b""))
        self.seen: list[Seen] = []

    def read_new(self) -> None:
        """Reads the lines that were added. A log that does not exist yet has none."""
        for log, (read, rest) in self._logs.items():
            if log.exists():
                with log.open("rb") as opened:
                    opened.seek(read)
                    data = opened.read()
                now = time.monotonic()
                *lines, rest = (rest + data).split(b"\n")
                self._logs[log] = (read + len(data), rest)
                events = [json.loads(line[8:]) for line in lines if line.startswith(b"slipway {")]
                self.seen += [Seen(now, event) for event in events if log == self._first or event["event"] in OF_RANK_0]

    def wait(self, wanted: Callable[[Seen], bool], since: int, seconds: float = 600.0) -> int:
        """The index of the first event from `since` on that is wanted."""
        deadline = time.monotonic() + seconds
        checked = since
        while True:
            over = self._ended()
            self.read_new()
            for index in range(checked, len(self.seen)):
                if wanted(self.seen[index]):
                    return index
            checked = len(self.seen)
            if over or time.monotonic() > deadline:
                raise RuntimeError(f"the event did not come; the log ends with\n{self._first.read_text(errors='replace')[-4000:]}")
            time.sleep(POLL_SECONDS)

    @property
    def step(self) -> int:
        """The newest step that was printed."""
        return next((seen.event["step"] for seen in reversed(self.seen) if seen.named("step")), 0)


class Recovery(NamedTuple):
    """One recovery. `phases`: seconds by name; None for what this version does not show."""

    seconds: float
    lost_steps: int
    source: str
    phases: Mapping[str, float | None]


def recovery(before: Timeline | None, after: Timeline, since: int, struck_at: float) -> Recovery:
    """The recovery from a fault at `struck_at`. `since`: index in `after` of the first event after the fault; `before`: the log of the
    fault, which is `after` itself unless a new attempt was necessary; None = there was no fault, only a start."""
    if before is None:
        last = 0
    else:
        last = max(seen.event["step"] for seen in before.seen[: since if before is after else None] if seen.named("step"))
    again = after.wait(lambda seen: seen.named("restart"), since) if before is after else 0
    end = after.wait(lambda seen: seen.named("step"), again)
    reported = _reported_phases(after, again)
    span = after.seen[again : end + 1]
    first = span[-1]
    resumed = next((seen.event for seen in span if seen.named("resume")), {})
    restarted = first.at if not span else span[0].at
    lost = last - (first.event["step"] - 1)
    return Recovery(first.at - struck_at, lost, resumed.get("source", "s3"), _phases(reported, span, restarted - struck_at))


def _phases(reported: Mapping[str, float] | None, span: list[Seen], until_restart: float) -> dict[str, float | None]:
    """Seconds by phase, as the driver counts them, otherwise from the log: `rendezvous` is then all that precedes the load."""
    if reported is not None:
        names = {"prepare": "prepare", "rendezvous": "rendezvous", "load": "load", "compile": "compile", "firstStep": "first-step"}
        stop = reported.get("stop", 0.0)
        return {"detect": until_restart - stop, "stop": stop} | {name: reported.get(key) for name, key in names.items()}
    load = _phase(span, "load")
    begun = next((seen.at for seen in span if seen.named("phase", name="load")), span[-1].at)
    unknown = dict.fromkeys(("stop", "prepare", "compile"))
    return {"detect": until_restart, "rendezvous": begun - span[0].at, "load": load, "firstStep": span[-1].at - begun - load} | unknown


def _reported_phases(timeline: Timeline, since: int) -> Mapping[str, float] | None:
    """The phases of a restart as the driver counts them; None if it does not."""
    if timeline.seen[since].event.get("state") != "begin":
        return None
    ended = timeline.wait(lambda seen: seen.named("restart", state="end"), since)
    return timeline.seen[ended].event["phases"]


def _phase(span: list[Seen], name: str) -> float:
    begins = [seen.at for seen in span if seen.named("phase", name=name, state="begin")]
    ends = [seen.at for seen in span if seen.named("phase", name=name, state="end")]
    return sum(ends) - sum(begins) if len(begins) == len(ends) else 0.0
