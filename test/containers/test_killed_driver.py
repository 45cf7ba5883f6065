"""A signal ends the driver of a host: it is started again in its container, and all ranks go on with it."""

import json
import os
import signal
from pathlib import Path

import pytest

from fake_world import FakeWorld, direct_checkpoints, job_json, with_gpus
from slipway_driver.coordinator import Decisions
from slipway_driver.main import MAX_STARTS

pytestmark = pytest.mark.jobs

#: Steps until 9, with a checkpoint at 2. In each of the first KILLS rounds every host waits at a later step, where a driver can be killed.
SCRIPT = """
import os, pathlib, time
host, round = os.environ["SM_CURRENT_HOST"], int(os.environ.get("SLIPWAY_RESTART", "0"))
checkpoints = pathlib.Path(os.environ["SLIPWAY_CHECKPOINT_URI"])
first = int(os.environ["SLIPWAY_RESUME_FROM"].rsplit("-", 1)[-1]) if os.environ["SLIPWAY_RESUME_FROM"] else 0
for step in range(first + 1, 10):
    print('slipway {"event": "step", "step": %d}' % step, flush=True)
    if step == 2:
        (checkpoints / "step-2").mkdir(parents=True, exist_ok=True)
        (checkpoints / "step-2/COMMITTED.json").write_text("{}")
    if step == 4 + round and round < int(os.environ["KILLS"]):
        print("waits in round", round, "pid", os.getpid(), flush=True)
        time.sleep(600)
print("finished in round", round, "started", os.environ["SLIPWAY_STARTED_AT"], flush=True)
"""


def world_of(tmp_path: Path, hosts: int, kills: int = 1, spares: int = 0, restarts: int = 5) -> FakeWorld:
    (tmp_path / "checkpoints").mkdir()
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    job = job_json(env={"KILLS": str(kills)}, restartsInPlace=restarts, checkpoints=checkpoints, spareInstances=spares)
    world = FakeWorld(tmp_path / "world", hosts, job, {"train.py": SCRIPT}, name=f"killed-{tmp_path.name}")
    world.start(with_gpus(tmp_path))
    return world


def kill_driver(world: FakeWorld, host: str) -> None:
    os.kill(world.driver(host), signal.SIGKILL)


def wait_for_round(world: FakeWorld, number: int) -> None:
    """Waits until the ranks of the first two hosts are in a round, and all hosts are connected."""
    for host in world.hosts[: 2 if len(world.hosts) > 1 else 1]:
        world.wait_for(host, f"waits in round {number}")
    if number == 0 and len(world.hosts) > 1:
        world.wait_for("algo-1", " hosts are connected")


def logs(world: FakeWorld) -> str:
    return "\n".join(world.log(host) for host in world.hosts)


@pytest.mark.parametrize(
    ("hosts", "killed"), [(2, "algo-2"), (2, "algo-1"), (1, "algo-1")], ids=["another host", "first host", "only host"]
)
def test_all_ranks_start_again_in_the_same_containers(tmp_path: Path, hosts: int, killed: str) -> None:
    world = world_of(tmp_path, hosts)
    wait_for_round(world, 0)
    kill_driver(world, killed)
    assert world.wait() == [0] * hosts, logs(world)
    for host in world.hosts:
        assert "finished in round 1" in world.log(host)
        (restart,) = (event for event in world.events(host, "restart") if event["state"] == "begin")
        assert (restart["round"], restart["host"], restart["reason"]) == (1, killed, f"a signal has ended the driver of {killed}")
        assert restart["resumeFrom"] == str(tmp_path / "checkpoints/step-2") and "replaced" not in restart
    assert "the driver was ended by signal 9" in world.log(killed)
    (end,) = (event for event in world.events("algo-1", "restart") if event["state"] == "end")
    assert end["lostSteps"] == (None if killed == "algo-1" else 2) and end["round"] == 1


def test_nothing_of_a_killed_driver_is_left(tmp_path: Path) -> None:
    world = world_of(tmp_path, 1)
    wait_for_round(world, 0)
    pid = int(world.log("algo-1").split("pid ")[1].split()[0])
    driver = world.driver("algo-1")
    os.kill(driver, signal.SIGKILL)
    world.wait_for("algo-1", "it is started again")
    world.wait_for("algo-1", "finished in round 1")
    assert not any(Path(f"/proc/{one}").exists() for one in (pid, driver))
    assert world.wait() == [0]


def test_the_time_limit_of_the_job_is_that_of_its_first_driver(tmp_path: Path) -> None:
    world = world_of(tmp_path, 1)
    wait_for_round(world, 0)
    before = (tmp_path / "world/algo-1/log").stat().st_ctime
    kill_driver(world, "algo-1")
    assert world.wait() == [0], logs(world)
    started = int(world.log("algo-1").split(" started ")[-1].split()[0])
    assert started <= before


def test_a_host_whose_driver_is_killed_twice_in_succession_comes_back_twice(tmp_path: Path) -> None:
    world = world_of(tmp_path, 2, kills=2)
    for number, killed in enumerate(("algo-2", "algo-1")):
        wait_for_round(world, number)
        kill_driver(world, killed)
    assert world.wait() == [0, 0], logs(world)
    assert "finished in round 2" in world.log("algo-1") and "finished in round 2" in world.log("algo-2")


def test_drivers_of_both_hosts_killed_at_once_come_back(tmp_path: Path) -> None:
    world = world_of(tmp_path, 2)
    wait_for_round(world, 0)
    for host in world.hosts:
        kill_driver(world, host)
    assert world.wait() == [0, 0], logs(world)
    assert all("finished in round 1" in world.log(host) for host in world.hosts)


def test_the_driver_of_a_spare_host_is_not_missed_and_still_takes_over(tmp_path: Path) -> None:
    world = world_of(tmp_path, 3, kills=1, spares=1)
    wait_for_round(world, 0)
    kill_driver(world, "algo-3")
    world.wait_for("algo-3", "it is started again")
    (world.base("algo-2") / "gpus").write_text("0, 0\n")
    before = world.log("algo-1").count(" hosts are connected")
    while world.log("algo-1").count(" hosts are connected") < max(2, before):
        assert world.processes["algo-3"].poll() is None, world.log("algo-3")
    world.kill_rank("algo-2")
    assert world.wait() == [0, 0, 0], logs(world)
    assert "finished in round 1" in world.log("algo-3") and "this host was replaced" in world.log("algo-2")


def test_a_replaced_host_stays_replaced_after_the_first_driver_was_killed(tmp_path: Path) -> None:
    world = world_of(tmp_path, 3, kills=2, spares=1)
    wait_for_round(world, 0)
    (world.base("algo-2") / "gpus").write_text("0, 0\n")
    world.kill_rank("algo-2")
    world.wait_for("algo-1", "waits in round 1")
    world.wait_for("algo-3", "waits in round 1")
    kill_driver(world, "algo-1")
    assert world.wait() == [0, 0, 0], logs(world)
    assert "finished in round 2" in world.log("algo-1") and "finished in round 2" in world.log("algo-3")
    assert "finished" not in world.log("algo-2")


@pytest.mark.parametrize("restarts", [0, 100], ids=["without restarts in place", "once too often"])
def test_a_container_ends_when_its_driver_cannot_come_back(tmp_path: Path, restarts: int) -> None:
    count = MAX_STARTS if restarts else 1
    world = world_of(tmp_path, 1, kills=count, restarts=restarts)
    for number in range(count):
        wait_for_round(world, number)
        kill_driver(world, "algo-1")
    assert world.wait() == [128 + signal.SIGKILL], logs(world)


def test_sigterm_reaches_a_driver_that_was_started_again(tmp_path: Path) -> None:
    world = world_of(tmp_path, 1, kills=2)
    wait_for_round(world, 0)
    kill_driver(world, "algo-1")
    wait_for_round(world, 1)
    world.processes["algo-1"].send_signal(signal.SIGTERM)
    assert world.wait() == [143]
    assert world.log("algo-1").count("it is started again") == 1


def test_decisions_are_those_that_were_written_whole() -> None:
    file = os.memfd_create("decisions")
    assert Decisions(file).facts == {}
    kept = Decisions(file)
    kept.keep(hosts=["algo-1", "algo-2"])
    kept.keep(starts=[[5, "algo-2"]])
    assert Decisions(file).facts == {"hosts": ["algo-1", "algo-2"], "starts": [[5, "algo-2"]]}
    kept.keep(hosts=["a"], starts=[])
    assert Decisions(file).facts == {"hosts": ["a"], "starts": []}
    # A driver that is killed before it has cut off the rest of a longer text has written all of its own.
    os.pwrite(file, b'["algo-2"]}', len(json.dumps(kept.facts)))
    assert Decisions(file).facts == {"hosts": ["a"], "starts": []}
    os.ftruncate(file, len(json.dumps(kept.facts)) - 1)
    assert Decisions(file).facts == {}
    os.close(file)
