"""How bench:recovery reads a log: of this version, of an earlier one, and of a new attempt."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fake_world import REPOSITORY

sys.path.append(str(REPOSITORY / "bench/recovery"))

from timeline import Seen, Timeline, recovery


def timeline(folder: Path, *events: tuple[float, dict[str, Any]]) -> Timeline:
    """A log that has been followed to its end."""
    log = folder / "log"
    log.write_text("")
    found = Timeline(log, lambda: True)
    found.seen = [Seen(at, event) for at, event in events]
    return found


def step(number: int) -> dict[str, Any]:
    return {"event": "step", "step": number}


def phase(name: str, state: str) -> dict[str, Any]:
    return {"event": "phase", "name": name, "state": state}


BEFORE = [(1.0, step(8)), (2.0, step(9))]


def test_phases_are_those_that_the_driver_counts(tmp_path: Path) -> None:
    phases = {"stop": 0.5, "prepare": 1.0, "rendezvous": 0.25, "load": 0.25, "first-step": 0.5}
    after = [
        (4.0, {"event": "restart", "state": "begin"}),
        (5.5, {"event": "resume", "source": "partner", "step": 8}),
        (6.0, step(9)),
        (6.0, {"event": "restart", "state": "end", "phases": phases}),
    ]
    log = timeline(tmp_path, *BEFORE, *after)
    found = recovery(log, log, 2, 3.0)
    assert (found.seconds, found.lost_steps, found.source) == (3.0, 1, "partner")
    assert found.phases == {
        "detect": 0.5, "stop": 0.5, "prepare": 1.0, "rendezvous": 0.25, "load": 0.25, "compile": None, "firstStep": 0.5,
    }  # fmt: skip


def test_of_an_earlier_version_all_before_the_load_is_rendezvous(tmp_path: Path) -> None:
    after = [(4.0, {"event": "restart"}), (20.0, phase("load", "begin")), (21.0, phase("load", "end")), (22.0, step(5))]
    log = timeline(tmp_path, *BEFORE, *after)
    found = recovery(log, log, 2, 3.0)
    assert (found.seconds, found.lost_steps, found.source) == (19.0, 5, "s3")
    phases = {name: seconds for name, seconds in found.phases.items() if seconds is not None}
    assert phases == {"detect": 1.0, "rendezvous": 16.0, "load": 1.0, "firstStep": 1.0}


def test_a_new_attempt_has_a_log_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    second = timeline(tmp_path / "second", (10.0, {"event": "inventory"}), (12.0, step(7)))
    found = recovery(timeline(tmp_path, *BEFORE), second, 0, 3.0)
    assert (found.seconds, found.lost_steps, found.phases["detect"]) == (9.0, 3, 7.0)


def test_fails_when_the_job_ends_without_the_event(tmp_path: Path) -> None:
    log = timeline(tmp_path, *BEFORE)
    with pytest.raises(RuntimeError, match="the event did not come"):
        recovery(log, log, 2, 3.0)


def test_lines_are_read_once_and_whole(tmp_path: Path) -> None:
    log = timeline(tmp_path)
    with (tmp_path / "log").open("w") as opened:
        for text in ("[rank 0] hello\nslipway " + json.dumps(step(1)), "\nslipway {"):
            opened.write(text)
            opened.flush()
            log.read_new()
    assert [seen.event for seen in log.seen] == [step(1)] and log.step == 1


def test_the_first_step_may_be_in_the_log_of_another_host(tmp_path: Path) -> None:
    """The first host reports the end of the restart, which is read before the step that another host has printed."""
    logs = [tmp_path / "first", tmp_path / "other"]
    phases = {"stop": 0.5, "first-step": 0.5}
    for log in logs:
        log.write_text('slipway {"event":"step","step":9}\n' if log == logs[0] else "")
    found = Timeline(logs[0], lambda: True, [logs[1], tmp_path / "not there yet"])
    found.read_new()
    restart = [{"event": "restart", "state": "begin"}, {"event": "restart", "state": "end", "phases": phases}]
    logs[0].write_text(logs[0].read_text() + "".join(f"slipway {json.dumps(event)}\n" for event in restart))
    others = [restart[0], phase("load", "begin"), phase("load", "end"), {"event": "resume", "source": "partner"}, step(9)]
    logs[1].write_text("".join(f"slipway {json.dumps(event)}\n" for event in others))
    result = recovery(found, found, 1, found.seen[0].at)
    assert (result.lost_steps, result.source, result.phases["firstStep"]) == (1, "partner", 0.5)
    assert sum(seen.named("restart") for seen in found.seen) == 2
