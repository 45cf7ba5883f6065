"""When the steps of an attempt began and ended, over restarts in place: the `starts` of the heartbeat."""

import json
from pathlib import Path

import pytest

from fake_s3 import FakeS3
from fake_world import FakeWorld, job_json
from slipway_driver.background import Heartbeat
from slipway_driver.step_times import MAX_IN_HEARTBEAT, StepTimes


def step(number: int) -> dict:
    return {"event": "step", "step": number}


def test_a_restart_in_place_forgets_no_step() -> None:
    times = StepTimes()
    times.begin(0)
    times.feed({"event": "phase", "name": "load"}, 1.0)
    times.feed(step(1), 10.0)
    times.feed(step(7), 70.0)
    times.end(75.0)
    times.begin(1)
    times.feed(step(6), 100.0)
    first, second = times.facts()
    assert first.pop("phases") == second.pop("phases") == {}
    assert first == {"number": 0, "firstStep": 1, "firstStepAt": 10.0, "step": 7, "stepAt": 70.0, "endedAt": 75.0}
    assert second == {"number": 1, "firstStep": 6, "firstStepAt": 100.0, "step": 6, "stepAt": 100.0, "endedAt": None}


def test_what_no_phase_covers_is_preparation_and_a_restart_says_what_it_has_cost() -> None:
    times = StepTimes()

    def phase(name: str, begin: float, end: float) -> None:
        assert times.feed({"event": "phase", "name": name, "state": "begin"}, begin) is None
        assert times.feed({"event": "phase", "name": name, "state": "end"}, end) is None

    times.begin(0)
    times.started(1.0)
    assert times.feed(step(1), 3.0) is None, "a first start is no restart"
    times.feed(step(9), 20.0)
    times.end(21.0)
    times.begin(1)
    times.started(21.5)
    phase("rendezvous", 22.5, 23.0)
    phase("load", 23.25, 25.25)
    times.feed({"event": "resume", "step": 8, "source": "memory"}, 25.0)
    phase("first-step", 25.25, 26.0)
    told = times.feed(step(9), 26.0)
    phases = {"stop": 0.5, "prepare": 1.25, "rendezvous": 0.5, "load": 2.0, "first-step": 0.75}
    assert told == {"round": 1, "source": "memory", "lostSteps": 1, "phases": phases}
    # Phases of later steps are no part of the restart.
    phase("eval", 30.0, 40.0)
    assert times.facts()[-1]["phases"] == phases and times.feed(step(10), 41.0) is None


def test_a_start_from_nothing_loses_every_step() -> None:
    times = StepTimes()
    for number in range(2):
        times.begin(number)
        times.started(10.0 * number)
        told = times.feed(step(1), 10.0 * number + 2.0)
        times.feed(step(5), 10.0 * number + 5.0)
        times.end(10.0 * number + 6.0)
    assert told == {"round": 1, "source": None, "lostSteps": 5, "phases": {"stop": 4.0, "prepare": 2.0}}


@pytest.mark.parametrize(
    ("resume_from", "first", "lost"),
    [
        ("/opt/ml/checkpoints/checkpoint-20", 21, 6),
        ("/opt/ml/checkpoints/checkpoint-20", 25, 6),  # the first loss decides the format, which shows the steps
        ("s3://bucket/runs/a/b/global_step_20", 30, 6),
        ("/opt/ml/checkpoints/checkpoint-20", 11, 16),  # the script takes an older one
        ("/opt/ml/checkpoints/checkpoint-20", 1, 26),
        ("/opt/ml/checkpoints", 33, None),  # files, one of which Lightning takes
        ("", 25, None),  # a checkpoint that only the script knows
        ("", 1, 26),
        ("", 0, 26),
    ],
)
def test_the_lost_steps_of_a_trainer_that_says_nothing_of_its_resume(resume_from: str, first: int, lost: int | None) -> None:
    times = StepTimes()
    times.begin(0)
    times.started(0.0)
    times.feed(step(1), 1.0)
    times.feed(step(26), 26.0)
    times.begin(1)
    times.started(30.0, resume_from)
    told = times.feed(step(first), 40.0)
    assert told is not None and told["lostSteps"] == lost


def test_the_heartbeat_stays_small_however_often_the_ranks_start() -> None:
    times = StepTimes()
    for number in range(50):
        times.begin(number)
        times.end(float(number))
    assert [start["number"] for start in times.facts()] == list(range(50 - MAX_IN_HEARTBEAT, 50))


def test_the_first_step_of_each_start_is_told_at_once() -> None:
    times, told = StepTimes(), []
    times.on_first_step = lambda: told.append(times.facts()[-1]["step"])
    for number, first in enumerate((1, 6)):
        times.begin(number)
        for later in range(3):
            times.feed(step(first + later), 1.0)
    assert told == [1, 6]


def test_a_heartbeat_that_is_wanted_soon_does_not_wait_for_its_minute() -> None:
    written = []

    class Client:
        def put(self, bucket: str, key: str, body: bytes, kind: str) -> None:
            written.append(json.loads(body))
            if len(written) == 1:
                heartbeat.soon()
            else:
                heartbeat._stopped.set()
                heartbeat._awake.set()

    heartbeat = Heartbeat("s3://b/heartbeat.json", lambda: {"step": len(written)}, Client())  # type: ignore[arg-type]
    heartbeat.start()
    heartbeat._thread.join(30)
    assert [heartbeat["step"] for heartbeat in written] == [0, 1]
    assert all(heartbeat["uptimeSeconds"] >= 0 for heartbeat in written)


def test_a_driver_that_has_returned_leaves_the_heartbeat_of_the_one_before_until_its_first_start() -> None:
    class Client:
        def put(self, bucket: str, key: str, body: bytes, kind: str) -> None:
            raise AssertionError(f"wrote {body!r}")

    Heartbeat("s3://b/heartbeat.json", dict, Client()).work()  # type: ignore[arg-type]


#: Ten steps of the run in two starts: the first fails in the middle of step 4, the second goes on from step 3.
FAILS_ONCE = """
import json, os, pathlib, sys
mark = pathlib.Path(os.environ["SM_MODEL_DIR"]) / "failed"
for step in range(1, 5) if not mark.exists() else range(3, 11):
    print("step=%d" % step, flush=True)
if not mark.exists():
    mark.write_text("")
    raise RuntimeError("once")
"""


def test_the_last_heartbeat_of_a_job_tells_all_its_starts(tmp_path: Path) -> None:
    s3 = FakeS3()
    try:
        progress = {"stepRegex": r"step=(\d+)", "startupMinutes": 60, "silenceMinutes": 60}
        uri = "s3://checkpoints/runs/default/tiny/heartbeat.json"
        world = FakeWorld(tmp_path, 1, job_json(heartbeatUri=uri, progress=progress, restartsInPlace=2), {"train.py": FAILS_ONCE})
        world.start(s3.environ)
        assert world.wait() == [0], world.log("algo-1")
        starts = json.loads(s3.objects["/checkpoints/runs/default/tiny/heartbeat.json"])["starts"]
        assert [(start["firstStep"], start["step"]) for start in starts] == [(1, 4), (3, 10)], world.log("algo-1")
        assert starts[0]["firstStepAt"] <= starts[0]["stepAt"] <= starts[0]["endedAt"] <= starts[1]["firstStepAt"]
    finally:
        s3.close()
