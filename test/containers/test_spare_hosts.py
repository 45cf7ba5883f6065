"""Spare hosts: who counts as broken, who takes a place, and whole jobs that lose a GPU and go on in the same containers."""

import hashlib
import json
import signal
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from fake_s3 import FakeS3
from fake_world import FakeWorld, direct_checkpoints, job_json, with_gpus
from slipway_driver.background import Mirror
from slipway_driver.cluster import Cluster, parse_cluster
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import DriverError
from slipway_driver.health import Health, complaint, parse_gpus
from slipway_driver.job import parse_job
from slipway_driver.restart_policy import Report, Start, decide
from slipway_s3 import S3Client

pytestmark = pytest.mark.jobs

HOSTS = ["algo-1", "algo-2", "algo-3"]


def cluster(current: str, spares: int = 1, **changes: object) -> Cluster:
    raw = {"current_host": current, "current_instance_type": "ml.m5.large", "hosts": HOSTS, **changes}
    return parse_cluster(raw, (), spares)


def test_the_last_hosts_wait() -> None:
    assert cluster("algo-2").training_hosts == ("algo-1", "algo-2")
    spare = cluster("algo-3")
    assert (spare.idle, spare.takes_part, spare.idle_hosts) == (True, False, ("algo-3",))


def test_a_spare_host_gets_the_rank_of_the_one_whose_place_it_takes_and_scripts_see_no_others() -> None:
    groups = [{"instance_group_name": "homogeneousCluster", "instance_type": "ml.m5.large", "hosts": HOSTS}]
    called = cluster("algo-3", instance_groups=groups).with_training(["algo-1", "algo-3"])
    assert (called.rank, called.master, called.idle_hosts) == (1, "algo-1", ("algo-2",))
    seen = called.as_scripts_see_it()
    assert seen.hosts == ("algo-1", "algo-3")
    assert seen.raw["hosts"] == seen.raw["instance_groups"][0]["hosts"] == ["algo-1", "algo-3"]


@pytest.mark.parametrize("spares", [3, 4])
def test_fails_without_a_host_that_trains(spares: int) -> None:
    with pytest.raises(DriverError, match=f"spareInstances: must leave a training host in a single group, got {spares} of 3 hosts"):
        cluster("algo-1", spares)


@pytest.mark.parametrize(("launcher", "spares"), [("mpi", 1), ("torchrun", -1)])
def test_fails_for_spares_that_the_launcher_could_not_call(launcher: str, spares: int) -> None:
    with pytest.raises(DriverError, match="spareInstances"):
        parse_job(job_json(launcher=launcher, spareInstances=spares))


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("0, 0\n1, 0\n", "0, 0\n1, 0\n", ""),
        ("0, 2\n1, 0\n", "0, 2\n1, 0\n", ""),
        ("0, 0\n1, 0\n", "0, 0\n", "GPU 1 is lost"),
        ("0, 0\n1, 0\n", "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\n", "GPU 0, 1 is lost"),
        ("0, 0\n1, 0\n", "0, 0\n1, [GPU is lost]\n", "GPU 1 is lost"),
        ("0, 2\n1, 0\n", "0, 3\n1, 0\n", "GPU 0 has uncorrectable memory errors"),
        ("0, [N/A]\n", "0, [N/A]\n", ""),
        ("0, 0\n", None, "nvidia-smi no longer responds"),
        ("", "", ""),
    ],
)
def test_a_host_is_broken_when_its_gpus_got_worse_since_its_start(before: str, now: "str | None", said: str) -> None:
    assert complaint(parse_gpus(before), None if now is None else parse_gpus(now)) == said


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "hardware"),
        ("NVRM: Xid: 79, GPU has fallen off the bus.", "hardware"),
        ("RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution", "hardware"),
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized", "hardware"),
        ("torch.AcceleratorError: CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error", "hardware"),
        ("torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable", "hardware"),
        ("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable", "hardware"),
        ("RuntimeError: CUDA error: invalid device ordinal", "user-code"),
        ("RuntimeError: the replay buffer is not yet initialized", "user-code"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "user-code"),
        ("RuntimeError: CUDA error: hardware stack error", "user-code"),
        ("ValueError: a bad line in the data", "user-code"),
    ],
)
def test_a_rank_that_names_broken_hardware_is_believed_without_nvidia_smi(reason: str, kind: str) -> None:
    with mock.patch("slipway_driver.health.read_gpus", lambda: None):
        end = Health().judged(Failure(1, "user-code", 3, reason, []))
    assert (end.kind, end.reason, end.rank) == (kind, reason, 3)


def report(host: str, kind: str = "peer-lost", step: "int | None" = 5) -> Report:
    return Report(host, 1, kind, "reason of " + host, step)


@pytest.mark.parametrize(
    ("reports", "starts", "spares", "hosts", "why"),
    [
        ([report("algo-1"), report("algo-2", "hardware")], [], ["algo-9"], ("algo-1", "algo-9", "algo-3"), ""),
        ([report("algo-1"), report("algo-2", "hardware", None)], [], ["algo-9"], ("algo-1", "algo-9", "algo-3"), ""),
        ([report("algo-3", "hardware"), report("algo-2", "hardware")], [], ["algo-8", "algo-9"], ("algo-1", "algo-9", "algo-8"), ""),
        ([report("algo-3", "hardware"), report("algo-2", "hardware")], [], ["algo-9"], (), "algo-3, algo-2: no spare host is left"),
        ([report("algo-2", "hardware")], [], [], (), "algo-2: no spare host is left"),
        ([report("algo-1", "hardware")], [], ["algo-9"], ("algo-9", "algo-2", "algo-3"), ""),
        ([report("algo-2", "user-code")], [], ["algo-9"], ("algo-1", "algo-2", "algo-3"), ""),
        # Twice the same host at the same place: it goes, as long as there is another.
        ([report("algo-2", "user-code")], [Start(5, "algo-2")], ["algo-9"], ("algo-1", "algo-9", "algo-3"), ""),
        ([report("algo-2", "user-code")], [Start(5, "algo-2")], [], (), "no progress beyond step 5 of the previous start"),
        ([report("algo-2", "user-code")], [Start(5, "algo-3")], ["algo-9"], (), "no progress beyond step 5 of the previous start"),
        ([report("algo-1", "user-code")], [Start(5, "algo-1")], ["algo-9"], ("algo-9", "algo-2", "algo-3"), ""),
        # The first host reports a hang, and any host a lost peer: neither says which host is broken.
        ([report("algo-1", "hang")], [Start(5, "algo-1")], ["algo-9"], (), "no progress beyond step 5 of the previous start"),
        ([report("algo-2")], [Start(5, "algo-2")], ["algo-9"], (), "no progress beyond step 5 of the previous start"),
        ([report("algo-2", "user-code")], [Start(4, "algo-2")], ["algo-9"], ("algo-1", "algo-2", "algo-3"), ""),
        # The host that hung with a broken GPU is the cause, regardless of which host has noticed the hang.
        ([report("algo-1", "hang"), report("algo-3", "hardware")], [], ["algo-9"], ("algo-1", "algo-2", "algo-9"), ""),
    ],
)
def test_a_spare_takes_the_place_of_the_broken_host(reports, starts, spares, hosts, why) -> None:
    decision = decide(reports, [], 3, starts, HOSTS, spares)
    assert (decision.restart, decision.hosts, decision.why) == (not why, hosts, why)


def test_nobody_is_called_for_a_host_that_does_not_answer() -> None:
    assert decide([report("algo-1")], ["algo-2"], 3, [], HOSTS, ["algo-9"]).why == "no answer from algo-2"


def test_no_host_has_two_places() -> None:
    reports = [report("algo-2", "hardware"), report("algo-3", "hardware")]
    decision = decide(reports, [], 3, [], ["algo-1", "algo-2", "algo-3"], ["algo-8", "algo-9"])
    assert (decision.restart, decision.hosts) == (True, ("algo-1", "algo-8", "algo-9"))


#: Steps until 6, with a checkpoint at 2. A host that BREAK names loses a GPU at step 4 or always fails there; the other one waits there for
#: its end.
SCRIPT = """
import json, os, pathlib, time
host, round = os.environ["SM_CURRENT_HOST"], int(os.environ.get("SLIPWAY_RESTART", "0"))
hosts = json.loads(os.environ["SM_HOSTS"])
own = hosts.index(host)
assert len(hosts) == 2, os.environ
assert list(json.loads(os.environ["SLIPWAY_HOSTS"])) == hosts == json.loads(os.environ["SM_RESOURCE_CONFIG"])["hosts"]
checkpoints = pathlib.Path(os.environ["SLIPWAY_CHECKPOINT_URI"])
broken = json.loads(os.environ["BREAK"])
first = int(os.environ["SLIPWAY_RESUME_FROM"].rsplit("-", 1)[-1]) if os.environ["SLIPWAY_RESUME_FROM"] else 0
for step in range(first + 1, 7):
    print("slipway " + json.dumps({"event": "step", "step": step}), flush=True)
    if own == 0 and step == 2:
        (checkpoints / "step-2").mkdir(parents=True, exist_ok=True)
        (checkpoints / "step-2/COMMITTED.json").write_text("{}")
    if own == 0 and step == 4:
        (checkpoints / f"arrived-{round}").write_text("")
    if step == 4 and host in broken:
        # A spare takes the place of another only once its driver has been heard of, which the start of a round does not wait for.
        first_log = pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"]).parent / "algo-1/log"
        while not (checkpoints / f"arrived-{round}").exists() or " hosts are connected" not in first_log.read_text(errors="replace"):
            time.sleep(0.05)
        if broken[host] == "gpu":
            pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"], "gpus").write_text("0, 0\\n")
        raise RuntimeError("something is wrong here")
    if step == 4 and any(other in broken for other in hosts):
        time.sleep(600)
print("finished in round", round, "as rank", own, flush=True)
"""


def spare_world(tmp_path: Path, hosts: int, spares: int, broken: "dict[str, str]") -> FakeWorld:
    (tmp_path / "checkpoints").mkdir()
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    job = job_json(
        env={"BREAK": json.dumps(broken)}, restartsInPlace=5, checkpoints=checkpoints, spareInstances=spares,
    )  # fmt: skip
    world = FakeWorld(tmp_path / "world", hosts, job, {"train.py": SCRIPT}, name=f"spare-{tmp_path.name}")
    world.start(with_gpus(tmp_path))
    return world


def test_a_spare_host_takes_the_place_of_one_whose_gpu_is_gone(tmp_path: Path) -> None:
    world = spare_world(tmp_path, 3, 1, {"algo-2": "gpu"})
    assert world.wait() == [0, 0, 0], "\n".join(world.log(host) for host in world.hosts)
    assert "finished in round 1 as rank 0" in world.log("algo-1")
    assert "finished in round 1 as rank 1" in world.log("algo-3")
    assert "this host is a spare" in world.log("algo-3") and "this host was replaced" in world.log("algo-2")
    assert world.events("algo-3", "step")[0]["step"] == 3, "it goes on from the checkpoint"
    for host in world.hosts:
        restart = world.events(host, "restart")[0]
        assert (restart["host"], restart["replaced"]) == ("algo-2", {"algo-2": "algo-3"})
        assert restart["reason"] == "GPU 1 is lost (RuntimeError: something is wrong here)"
        assert restart["resumeFrom"] == str(tmp_path / "checkpoints/step-2")
    inventory = {host: world.events(host, "inventory")[0]["rank"] for host in world.hosts}
    assert inventory == {"algo-1": 0, "algo-2": 1, "algo-3": None}


def test_a_spare_host_takes_the_place_of_the_first_host_which_still_decides(tmp_path: Path) -> None:
    """Both hosts of the start lose a GPU, one after the other: the first one decides about the second although it no longer trains."""
    world = spare_world(tmp_path, 4, 2, {"algo-1": "gpu", "algo-3": "gpu"})
    assert world.wait() == [0, 0, 0, 0], "\n".join(world.log(host) for host in world.hosts)
    assert "this host was replaced by a spare host, and its driver still coordinates the others" in world.log("algo-1")
    assert "finished in round 2 as rank 0" in world.log("algo-4")
    assert "finished in round 2 as rank 1" in world.log("algo-2")
    for host in world.hosts:
        begun = [event for event in world.events(host, "restart") if event["state"] == "begin"]
        assert [event["replaced"] for event in begun] == [{"algo-1": "algo-3"}, {"algo-3": "algo-4"}], host
    ended = [event for event in world.events("algo-1", "restart") if event["state"] == "end"]
    assert [(event["round"], event["lostSteps"]) for event in ended] == [(1, 2), (2, 2)], "it hears the steps of the new first rank"


def test_hosts_are_replaced_until_no_spare_is_left(tmp_path: Path) -> None:
    """One that fails twice at the same place though it sees nothing wrong, then one that loses a GPU."""
    world = spare_world(tmp_path, 3, 1, {"algo-2": "code", "algo-3": "gpu"})
    assert world.wait() == [75, 75, 75]
    begun = [event for event in world.events("algo-1", "restart") if event["state"] == "begin"]
    assert [event.get("replaced") for event in begun] == [None, {"algo-2": "algo-3"}]
    assert "no restart in place: algo-3: no spare host is left" in world.log("algo-1")
    assert world.failure("algo-3")["class"] == "hardware"
    assert {world.failure(host)["class"] for host in ("algo-1", "algo-2")} == {"peer-lost"}


def test_without_spares_a_broken_host_gets_no_restart_in_place(tmp_path: Path) -> None:
    world = spare_world(tmp_path, 2, 0, {"algo-2": "gpu"})
    assert world.wait() == [75, 75]
    assert world.events("algo-1", "restart") == []
    failure = world.failure("algo-2")
    assert (failure["class"], failure["reason"]) == ("hardware", "GPU 1 is lost (RuntimeError: something is wrong here)")


def test_sigterm_ends_a_spare_host_at_once_and_well(tmp_path: Path) -> None:
    world = spare_world(tmp_path, 3, 1, {})
    world.wait_for("algo-3", "this host is a spare")
    world.processes["algo-3"].send_signal(signal.SIGTERM)
    assert world.wait() == [0, 0, 0], "\n".join(world.log(host) for host in world.hosts)


def test_a_spare_host_ends_when_the_first_host_is_gone(tmp_path: Path) -> None:
    job = job_json(spareInstances=1)
    world = FakeWorld(tmp_path, 3, job, {"train.py": "import time; time.sleep(600)"})
    world.start({"SLIPWAY_PEER_SECONDS": "1"})
    try:
        world.wait_for("algo-1", "the drivers of all 3 hosts are connected")
        world.processes["algo-1"].kill()
        assert world.processes["algo-3"].wait(60) == 75
    finally:
        world.kill()
    assert world.failure("algo-3")["reason"] == "the connection to the first host's driver was lost"


def committed(fake: FakeS3, step: int, files: "dict[str, bytes]", digests: "dict[str, str] | None" = None) -> None:
    """A checkpoint as the trainer leaves it."""
    entries = []
    for key, body in files.items():
        fake.objects[f"/c/run/step-{step}/{key}"] = body
        entries.append({"key": key, "bytes": len(body), "sha256": (digests or {}).get(key) or hashlib.sha256(body).hexdigest()})
    fake.objects[f"/c/run/step-{step}/COMMITTED.json"] = json.dumps({"objects": entries}).encode()


@pytest.fixture
def fake():
    world = FakeS3()
    yield world
    world.close()


def mirror(fake: FakeS3, root: Path) -> Mirror:
    return Mirror("s3://c/run/", root, S3Client(fake.environ))


def here(root: Path) -> "dict[str, bytes]":
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_a_spare_host_holds_the_newest_checkpoint_as_the_trainer_looks_for_it(fake: FakeS3, tmp_path: Path) -> None:
    committed(fake, 5, {"__0_0.distcp": b"old"})
    kept = mirror(fake, tmp_path)
    kept.work()
    committed(fake, 10, {"__0_0.distcp": b"one", "__1_0.distcp": b"two", ".metadata": b"three"})
    fake.objects["/c/run/step-15/__0_0.distcp"] = b"not committed"
    kept.work()
    files = here(tmp_path)
    assert {name: body for name, body in files.items() if not name.endswith(".sha256")} == {
        "step-10/__0_0.distcp": b"one", "step-10/__1_0.distcp": b"two", "step-10/.metadata": b"three",
    }  # fmt: skip
    local_copies = pytest.importorskip("slipway_trainer.checkpoint.local_copies")
    store = local_copies.CopyingStore(SimpleNamespace(uri="s3://c/run/"), tmp_path)
    assert store.trust("step-10", json.loads(fake.objects["/c/run/step-10/COMMITTED.json"])) == 3
    assert store.read("step-10/__1_0.distcp") == b"two"
    asked = len(fake.requests)
    kept.work()
    assert [line for line in fake.requests[asked:] if "/step-10/" in line] == [], "nothing travels twice"


def test_a_torn_object_is_never_kept(fake: FakeS3, tmp_path: Path) -> None:
    committed(fake, 5, {"__0_0.distcp": b"whole", "__1_0.distcp": b"other"}, {"__1_0.distcp": "0" * 64})
    with pytest.raises(ValueError, match="__1_0.distcp: its content does not match the digest"):
        mirror(fake, tmp_path).work()
    assert "step-5/__1_0.distcp" not in here(tmp_path)


def test_nothing_is_written_outside_the_folder_of_the_copies(fake: FakeS3, tmp_path: Path) -> None:
    committed(fake, 5, {"../../escape": b"x"})
    mirror(fake, tmp_path / "copies").work()
    assert here(tmp_path) == {}


def test_no_copy_where_the_disk_has_no_room(fake: FakeS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committed(fake, 5, {"__0_0.distcp": b"x" * 100})
    monkeypatch.setattr("slipway_driver.background.MIN_FREE_BYTES", 1 << 62)
    mirror(fake, tmp_path).work()
    assert here(tmp_path) == {}
