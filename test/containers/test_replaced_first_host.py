"""A spare host has replaced the first host, whose driver still monitors the job and decides for all hosts."""

import json
import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_s3 import FakeS3
from fake_world import FakeWorld, direct_checkpoints, job_json, lose_gpu, with_gpus, with_quick_torchrun
from slipway_driver.tables import EXIT_CODES

pytestmark = pytest.mark.jobs

#: Steps until 9, with a checkpoint at 2. In each round every host waits at a later step for what the test says.
SCRIPT = """
import json, os, pathlib, signal, sys, time
host, round = os.environ["SM_CURRENT_HOST"], int(os.environ.get("SLIPWAY_RESTART", "0"))
own = json.loads(os.environ["SM_HOSTS"]).index(host)
checkpoints = pathlib.Path(os.environ["SLIPWAY_CHECKPOINT_URI"])
signal.signal(signal.SIGTERM, lambda *_: (print("saved in round", round, flush=True), sys.exit(0)))
first = int(os.environ["SLIPWAY_RESUME_FROM"].rsplit("-", 1)[-1]) if os.environ["SLIPWAY_RESUME_FROM"] else 0
for step in range(first + 1, 10):
    if own == 0:
        print("slipway " + json.dumps({"event": "step", "step": step, "loss": 9.5 - step}), flush=True)
    if own == 0 and step == 2:
        (checkpoints / "step-2").mkdir(parents=True, exist_ok=True)
        (checkpoints / "step-2/COMMITTED.json").write_text("{}")
    if step == 4 + round:
        print("waits in round", round, flush=True)
        order = checkpoints / f"order-{round}"
        while not order.exists():
            if own == 0 and os.path.exists(os.environ["SLIPWAY_HAND_OVER_FILE"]):
                print("requested:", open(os.environ["SLIPWAY_HAND_OVER_FILE"]).read(), flush=True)
                sys.exit(76)
            time.sleep(0.05)
        if order.read_text() == "fail" and own == 0:
            raise RuntimeError("something is wrong here")
        if order.read_text() != "go":
            time.sleep(600)
print("finished in round", round, "as rank", own, flush=True)
"""


class World(FakeWorld):
    """Two hosts that train, or one, and a spare host; `algo-1` has lost a GPU in round 0."""

    def order(self, number: int, what: str) -> None:
        """Tells the ranks of a round what to do. Each of them reads a whole file."""
        file = self.root.parent / "checkpoints" / f"order-{number}"
        file.with_suffix(".new").write_text(what)
        file.with_suffix(".new").rename(file)

    def restarts(self, host: str, state: str = "begin") -> list:
        return [event for event in self.events(host, "restart") if event["state"] == state]

    def logs(self) -> str:
        return "\n".join(self.log(host) for host in self.hosts)


#: Those of the current test, which end with it.
WORLDS: "list[World]" = []


@pytest.fixture
def s3() -> Iterator[FakeS3]:
    found = FakeS3()
    yield found
    for world in WORLDS:
        world.kill()
    WORLDS.clear()
    found.close()


def replaced_world(tmp_path: Path, s3: FakeS3, hosts: int = 2, restarts: int = 5, spares: int = 1, **environ: str) -> World:
    """A job in round 1, with `algo-1` replaced by the first spare host."""
    (tmp_path / "checkpoints").mkdir()
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    job = job_json(
        restartsInPlace=restarts, checkpoints=checkpoints, spareInstances=spares, launcher="torchrun",
        heartbeatUri="s3://checkpoints/heartbeat.json", handOverUri="s3://artifacts/hand-over.json",
    )  # fmt: skip
    world = World(tmp_path / "world", hosts + spares, job, {"train.py": SCRIPT}, name=f"first-{uuid.uuid4().hex[:12]}")
    WORLDS.append(world)
    world.start({**with_gpus(tmp_path), **with_quick_torchrun(tmp_path), **s3.environ, "SLIPWAY_HAND_OVER_SECONDS": "0.1", **environ})
    for host in world.hosts[:hosts]:
        world.wait_for(host, "waits in round 0")
    world.wait_for("algo-1", " hosts are connected")
    lose_gpu(world, "algo-1")
    world.kill_rank("algo-1")
    for host in world.hosts[1 : hosts + 1]:
        world.wait_for(host, "waits in round 1")
    return world


@pytest.mark.parametrize("hosts", [1, 2])
def test_the_job_ends_well_on_the_other_hosts(tmp_path: Path, s3: FakeS3, hosts: int) -> None:
    world = replaced_world(tmp_path, s3, hosts)
    world.order(1, "go")
    assert world.wait() == [0] * (hosts + 1), world.logs()
    assert "rank 0 is on %s" % world.hosts[-1] in world.log("algo-1")
    assert "finished in round 1 as rank 0" in world.log(world.hosts[-1]) and "finished" not in world.log("algo-1")
    beat = json.loads(s3.objects["/checkpoints/heartbeat.json"])
    assert (beat["step"], beat["loss"], beat["restarts"], beat["sparesLeft"]) == (9, 0.5, 1, 0)
    assert [(start["number"], start["firstStep"], start["step"]) for start in beat["starts"]] == [(0, 1, 4), (1, 3, 9)]
    assert beat["setAside"] == [{"host": "algo-1", "reason": world.restarts("algo-1")[0]["reason"]}]
    (end,) = world.restarts("algo-1", "end")
    assert (end["round"], end["lostSteps"]) == (1, 2)


def test_a_killed_driver_of_the_replaced_host_disturbs_no_rank(tmp_path: Path, s3: FakeS3) -> None:
    world = replaced_world(tmp_path, s3)
    os.kill(world.driver("algo-1"), signal.SIGKILL)
    world.wait_for("algo-1", "it is started again")
    while world.log("algo-1").count("still coordinates the others") < 2:
        assert world.processes["algo-1"].poll() is None, world.log("algo-1")
    world.order(1, "fail")
    for host in ("algo-2", "algo-3"):
        world.wait_for(host, "waits in round 2")
    world.order(2, "go")
    assert world.wait() == [0, 0, 0], world.logs()
    assert [event["round"] for event in world.restarts("algo-1")] == [1, 2], "the next driver knows which start is the next"
    assert world.restarts("algo-1")[1]["host"] == "algo-3"


def test_a_killed_driver_of_rank_0_starts_all_ranks_again(tmp_path: Path, s3: FakeS3) -> None:
    world = replaced_world(tmp_path, s3)
    os.kill(world.driver("algo-3"), signal.SIGKILL)
    for host in ("algo-2", "algo-3"):
        world.wait_for(host, "waits in round 2")
    world.order(2, "go")
    assert world.wait() == [0, 0, 0], world.logs()
    assert world.restarts("algo-1")[1]["reason"] == "a signal has ended the driver of algo-3"


def test_a_killed_driver_of_the_replaced_host_still_knows_the_spare_hosts_that_are_left(tmp_path: Path, s3: FakeS3) -> None:
    world = replaced_world(tmp_path, s3, spares=2)
    os.kill(world.driver("algo-1"), signal.SIGKILL)
    world.wait_for("algo-1", "it is started again")
    while world.log("algo-1").count("the drivers of all 4 hosts are connected") < 2:
        assert world.processes["algo-1"].poll() is None, world.log("algo-1")
    lose_gpu(world, "algo-3")
    world.kill_rank("algo-3")
    for host in ("algo-2", "algo-4"):
        world.wait_for(host, "waits in round 2")
    world.order(2, "go")
    assert world.wait() == [0, 0, 0, 0], world.logs()
    assert [event["replaced"] for event in world.restarts("algo-4")] == [{"algo-1": "algo-3"}, {"algo-3": "algo-4"}]


def test_the_replaced_host_ends_when_no_other_host_is_left(tmp_path: Path, s3: FakeS3) -> None:
    world = replaced_world(tmp_path, s3, hosts=1, SLIPWAY_PEER_SECONDS="1")
    world.processes["algo-2"].kill()
    assert world.processes["algo-1"].wait(60) == 75, world.log("algo-1")
    assert world.failure("algo-1")["class"] == "peer-lost"


def test_a_hang_on_the_other_hosts_is_found_and_ends_the_attempt_when_no_restart_is_left(tmp_path: Path, s3: FakeS3) -> None:
    world = replaced_world(tmp_path, s3, restarts=2, SLIPWAY_WATCHDOG_SECONDS="3")
    for host in ("algo-2", "algo-3"):
        world.wait_for(host, "waits in round 2")
    assert world.wait() == [EXIT_CODES["HANG"], 75, 75], world.logs()
    assert (world.restarts("algo-1")[1]["host"], world.restarts("algo-1")[1]["reason"]) == ("algo-1", "no progress for 3 s after step 5")
    assert "no restart in place: no restarts are left" in world.log("algo-2")
    assert [world.failure(host)["class"] for host in world.hosts] == ["hang", "peer-lost", "peer-lost"]


def test_an_error_without_a_restart_is_that_of_its_host(tmp_path: Path, s3: FakeS3) -> None:
    world = replaced_world(tmp_path, s3, restarts=1)
    world.order(1, "fail")
    assert world.wait() == [75, 75, 1], world.logs()
    assert world.failure("algo-3")["reason"] == "RuntimeError: something is wrong here"
    assert world.failure("algo-1")["reason"] == "another host's ranks ended: user-code"


def test_a_request_to_hand_over_reaches_the_ranks_and_is_confirmed(tmp_path: Path, s3: FakeS3) -> None:
    world = replaced_world(tmp_path, s3)
    s3.objects["/artifacts/hand-over.json"] = json.dumps({"attempt": 1, "action": "hand-over", "reason": "room for urgent"}).encode()
    world.wait_for("algo-3", "requested: room for urgent")
    world.wait()
    assert json.loads(s3.objects["/checkpoints/heartbeat.json"])["handOver"] is True
    assert sum(len(world.events(host, "hand-over")) for host in world.hosts) == 1
    assert world.failure("algo-3")["class"] == "hand-over"


def test_the_replaced_host_waits_after_sigterm_until_the_others_have_saved(tmp_path: Path, s3: FakeS3) -> None:
    world = replaced_world(tmp_path, s3)
    world.processes["algo-1"].send_signal(signal.SIGTERM)
    for host in ("algo-2", "algo-3"):
        world.processes[host].send_signal(signal.SIGTERM)
    assert world.wait() == [0, 0, 0], world.logs()
    assert all("saved in round 1" in world.log(host) for host in ("algo-2", "algo-3"))
