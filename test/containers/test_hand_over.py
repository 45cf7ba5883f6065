"""The control plane's request to save and leave: from S3 over the driver to the ranks."""

import json
from pathlib import Path

import pytest

from fake_s3 import FakeS3
from fake_world import FakeWorld, job_json
from slipway_driver.background import HandOverWatch
from slipway_s3 import S3Client, S3Error
from slipway_trainer.departure import Departure

pytestmark = pytest.mark.jobs

URI = "s3://artifacts/runs/default/tiny/job/1/hand-over.json"
KEY = "/artifacts/runs/default/tiny/job/1/hand-over.json"
LEAVES = """
import os, sys, time
asked, end = os.environ['SLIPWAY_HAND_OVER_FILE'], time.time() + 60
while time.time() < end:
    if os.path.exists(asked):
        print('asked:', open(asked).read())
        sys.exit(76)
    time.sleep(0.05)
"""


def request(**changes: object) -> bytes:
    return json.dumps({"schema": 1, "attempt": 1, "action": "hand-over", "reason": "room for urgent", **changes}).encode()


def test_reaches_the_script_the_log_and_the_heartbeat(tmp_path: Path) -> None:
    s3 = FakeS3()
    try:
        s3.objects[KEY] = request()
        job = job_json(heartbeatUri="s3://checkpoints/heartbeat.json", handOverUri=URI)
        world = FakeWorld(tmp_path, 1, job, {"train.py": LEAVES})
        world.start(s3.environ)
        assert world.wait() == [76], world.log("algo-1")
        assert "asked: room for urgent" in world.log("algo-1")
        assert '"event":"hand-over","reason":"room for urgent"' in world.log("algo-1")
        assert json.loads(s3.objects["/checkpoints/heartbeat.json"])["handOver"] is True
        assert '"class":"hand-over","code":76' in (world.base("algo-1") / "output/failure").read_text()
    finally:
        s3.close()


def test_is_looked_for_by_the_first_host_alone_and_only_where_the_job_file_says_so(tmp_path: Path) -> None:
    s3 = FakeS3()
    try:
        for name, changes, observations in (("asked", {"handOverUri": URI}, 1), ("never", {}, 0)):
            s3.requests.clear()
            world = FakeWorld(tmp_path / name, 2, job_json(**changes), {"train.py": "import time\ntime.sleep(1)\n"})
            world.start(s3.environ)
            assert world.wait() == [0, 0], world.log("algo-1")
            assert sum("hand-over.json" in line for line in s3.requests) == observations
    finally:
        s3.close()


class _Client(S3Client):
    """Answers every read with what it was given."""

    def __init__(self, answer: bytes | Exception) -> None:
        self._answer = answer

    def get(self, bucket: str, key: str, first: int = 0, length: int | None = None) -> bytes:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "complaints"),
    [
        (S3Error("GET", 404, "NoSuchKey", ""), 0),
        (S3Error("GET", 403, "AccessDenied", ""), 0),
        (S3Error("GET", 500, "InternalError", ""), 1),
        (request(attempt=2), 0),
        (request(action="other"), 0),
        (b"[]", 0),
        (b"not JSON", 1),
    ],
)
def test_anything_else_asks_for_nothing_and_is_complained_of_once(
    tmp_path: Path, answer: bytes | Exception, complaints: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("slipway_driver.background.log", said.append)
    target = tmp_path / "asked"
    watch = HandOverWatch(URI, 1, target, lambda reason: pytest.fail(reason), _Client(answer))
    assert (watch.check(), watch.check(), target.exists()) == (False, False, False)
    assert len(said) == complaints


def test_is_passed_on_once_the_disk_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("slipway_driver.background.log", said.append)
    folder = tmp_path / "full"
    watch = HandOverWatch(URI, 1, folder / "asked", said.append, _Client(request()))
    assert (watch.check(), watch.check(), len(said)) == (False, False, 1)
    folder.mkdir()
    assert watch.check() and said[1:] == ["room for urgent"]


def test_of_an_earlier_start_on_the_same_disk_is_forgotten(tmp_path: Path) -> None:
    target = tmp_path / "asked"
    target.write_text("of before\n")
    watch = HandOverWatch(URI, 1, target, print, _Client(S3Error("GET", 404, "NoSuchKey", "")))
    watch.start()
    watch.stop()
    assert not target.exists()


def test_the_trainer_leaves_at_the_end_of_its_step(tmp_path: Path) -> None:
    departure = Departure(None, str(tmp_path / "asked"))
    assert not departure.due(1.0, 1.0)
    (tmp_path / "asked").write_text("room\n")
    assert departure.due(1.0, 1.0)
