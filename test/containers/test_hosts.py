"""Jobs over several hosts, each with its own network, /opt/ml, DNS and process 1, all of them called `aws`."""

import json
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from net_world import NetWorld, why_not
from test_mpi import NASTY, needs_mpi, shim  # noqa: F401

from fake_world import job_json

pytestmark = [pytest.mark.skipif(bool(why_not()), reason=why_not()), pytest.mark.jobs]


@pytest.fixture
def worlds() -> Iterator[Callable[..., NetWorld]]:
    made: list[NetWorld] = []

    def make(*words: object, **more: object) -> NetWorld:
        made.append(NetWorld(*words, **more))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for world in made:
        world.kill()


def logs(world: NetWorld) -> str:
    return "\n".join(world.log(host) for host in world.hosts)


SCRIPT = """
import json, os, socket, sys
found = {"argv": sys.argv[1:], "env": dict(os.environ), "name": socket.gethostname(), "cwd": os.getcwd()}
found["addresses"] = {host: socket.gethostbyname(host) for host in json.loads(os.environ["SM_HOSTS"])}
print(json.dumps(found))
sys.exit(3 if os.environ["SM_CURRENT_HOST"] == "algo-2" else 0)
"""
GROUPS = [
    {"instance_group_name": "gpu", "instance_type": "ml.p4d.24xlarge", "hosts": ["algo-2"]},
    {"instance_group_name": "cpu", "instance_type": "ml.c5.18xlarge", "hosts": ["algo-1"]},
]


Observed = tuple[NetWorld, dict[str, dict]]
HYPERPARAMETERS = {"text": NASTY[2], "quote": NASTY[1], "line": "new\nline", "letters": NASTY[4], "number": "0.1"}


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """A job that has ended: two hosts of two groups, one name that came late, no EFA device; and what the script saw on each host."""
    job = job_json(arguments=NASTY, env={"TRICKY": "a'b;$c\nd"}, trainingGroups=["gpu"], efa="required")
    root = tmp_path_factory.mktemp("hosts")
    world = NetWorld(root, 2, job, {"train.py": SCRIPT}, late={"algo-1": 4}, hyperparameters=HYPERPARAMETERS, groups=GROUPS)
    try:
        world.start({"FI_PROVIDER": "efa", "NCCL_PROTO": "simple"})
        assert world.wait() == [0, 3], logs(world)
        yield world, {host: seen_by(world, host) for host in world.hosts}
    finally:
        world.kill()


def seen_by(world: NetWorld, host: str) -> dict:
    return next(json.loads(line) for line in world.log(host).splitlines() if line.startswith('{"argv"'))


def test_a_name_that_resolves_late_is_waited_for(observed: Observed) -> None:
    world, seen = observed
    assert world.dns is not None and world.dns.asked.count("algo-1") > 4
    assert all(found["addresses"] == {"algo-1": "10.77.0.10", "algo-2": "10.77.0.11"} for found in seen.values())


def test_every_host_is_called_aws_and_has_its_own_opt_ml(observed: Observed) -> None:
    for host, found in observed[1].items():
        assert (found["name"], found["cwd"]) == ("aws", "/opt/ml/code")
        assert (found["env"]["SM_CURRENT_HOST"], found["env"]["SM_MODEL_DIR"]) == (host, "/opt/ml/model")
        assert found["env"]["NCCL_SOCKET_IFNAME"] == "eth0"


def test_arguments_and_variables_with_spaces_quotes_dollars_line_breaks_and_unicode_arrive_as_they_are(observed: Observed) -> None:
    for found in observed[1].values():
        assert (found["argv"], found["env"]["TRICKY"]) == (NASTY, "a'b;$c\nd")


def test_hyperparameters_with_spaces_quotes_dollars_line_breaks_and_unicode_arrive_as_they_are(observed: Observed) -> None:
    for found in observed[1].values():
        assert [found["env"]["SM_HP_" + name.upper()] for name in HYPERPARAMETERS] == list(HYPERPARAMETERS.values())


def test_of_heterogeneous_groups_only_the_training_ones_meet_and_all_run_the_script(observed: Observed) -> None:
    for host, found in observed[1].items():
        env = found["env"]
        assert (env["MASTER_ADDR"], env["MASTER_PORT"], env["SM_IS_HETERO"]) == ("algo-2", "7777", "true")
        assert env["SM_CURRENT_INSTANCE_GROUP"] == {"algo-1": "cpu", "algo-2": "gpu"}[host]


def test_without_an_efa_device_the_provider_of_the_image_is_taken_back(observed: Observed) -> None:
    world, seen = observed
    for host, found in seen.items():
        # It would make the plugin fail.
        assert "FI_PROVIDER" not in found["env"] and "FI_PROVIDER=efa unset" in world.log(host)


def test_only_the_host_whose_script_failed_has_a_failure_file(observed: Observed) -> None:
    world = observed[0]
    assert world.failure("algo-2")["code"] == 3
    assert not (world.base("algo-1") / "output/failure").exists()


#: Counts together until 6. Hosts and ranks misbehave in the first start as SLIPWAY tells them to.
STEPS = """
import os, pathlib, signal, socket, sys, time
from mpi4py import MPI
world, mode = MPI.COMM_WORLD, os.environ.get("MODE", "")
rank, first = world.Get_rank(), "SLIPWAY_RESTART" not in os.environ
if rank == 0:
    print("hosts", world.gather(os.environ["SM_CURRENT_HOST"]), flush=True)
else:
    world.gather(os.environ["SM_CURRENT_HOST"])
def save(*_):
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
for step in range(1, 7):
    total = world.allreduce(step)
    if rank == 0:
        print('slipway {"event":"step","step":%d,"total":%d}' % (step, total), flush=True)
    if step == 3 and rank == 1 and mode == "rank freezes" and first:
        os.kill(os.getpid(), signal.SIGSTOP)
    while step == 3 and mode == "waits" and first:
        time.sleep(0.05)
print("finished", flush=True)
"""


def steps_world(tmp_path: Path, worlds: Callable[..., NetWorld], library: str, hosts: int, mode: str = "", **more: object) -> NetWorld:
    variables = {"MODE": mode, "SLIPWAY_PEER_SECONDS": more.pop("peer_seconds", "120")}
    progress = {"startupMinutes": 5, "silenceMinutes": more.pop("silence", 300) / 60}  # type: ignore[operator]
    job = job_json(launcher="mpi", env=variables, progress=progress | {"stepRegex": "never"}, **more)
    world = worlds(tmp_path, hosts, job, {"train.py": STEPS})
    # The shim lies where the host's mounts do not hide it.
    for host in world.hosts:
        shutil.copy(library, world.base(host) / "shim.so")
    # Hosts that share the cores of one machine must not spin while they wait.
    world.start({"SLIPWAY_HOSTNAME_SHIM": "/opt/ml/shim.so", "OMPI_MCA_mpi_yield_when_idle": "1"})
    return world


@needs_mpi
@pytest.mark.slow
def test_eleven_hosts_are_ranked_as_strings(tmp_path: Path, worlds: Callable[..., NetWorld], shim: str) -> None:  # noqa: F811
    world = steps_world(tmp_path, worlds, shim, 11)
    assert world.wait() == [0] * 11, logs(world)
    ranked = ["algo-1", "algo-10", "algo-11", *("algo-%d" % number for number in range(2, 10))]
    assert "hosts %r" % ranked in world.log("algo-1")
    assert [event["total"] for event in world.events("algo-1", "step")] == [11 * step for step in range(1, 7)]
    assert [world.log(host).count("finished") for host in world.hosts] == [1] * 11


@needs_mpi
def test_a_host_that_dies_ends_the_job_as_a_lost_peer(tmp_path: Path, worlds: Callable[..., NetWorld], shim: str) -> None:  # noqa: F811
    world = steps_world(tmp_path, worlds, shim, 3, "waits", restartsInPlace=3, peer_seconds="2")
    world.wait_for("algo-1", '"step":3')
    world.wait_for("algo-1", "the drivers of all 3 hosts are connected")
    world.send("algo-2", signal.SIGKILL)
    world.wait()
    assert [world.events(host, "exit")[0]["code"] for host in ("algo-1", "algo-3")] == [75, 75], logs(world)
    assert "no restart in place: no answer from algo-2" in world.log("algo-1")
    assert world.failure("algo-1")["class"] == "peer-lost"


@needs_mpi
@pytest.mark.slow
def test_a_host_that_loses_power_is_noticed_although_it_says_nothing(
    tmp_path: Path, worlds: Callable[..., NetWorld], shim: str  # noqa: F811
) -> None:  # fmt: skip
    world = steps_world(tmp_path, worlds, shim, 2, "waits", restartsInPlace=3)
    world.wait_for("algo-1", '"step":3')
    world.wait_for("algo-1", "the drivers of all 2 hosts are connected")
    world.unplug("algo-2")
    world.wait()
    assert world.events("algo-1", "exit")[0]["code"] == 75, logs(world)
    assert "mpi: lost algo-2" in world.log("algo-1")
    assert "no restart in place: no answer from algo-2" in world.log("algo-1")


@needs_mpi
def test_a_host_that_freezes_is_a_hang_that_no_restart_in_place_mends(
    tmp_path: Path, worlds: Callable[..., NetWorld], shim: str  # noqa: F811
) -> None:  # fmt: skip
    world = steps_world(tmp_path, worlds, shim, 2, "waits", restartsInPlace=3, silence=1.5, peer_seconds="2")
    world.wait_for("algo-1", '"step":3')
    world.freeze("algo-2")
    assert world.processes["algo-1"].wait(180) == 70, logs(world)
    assert world.events("algo-1", "hang")[0]["step"] == 3
    assert "no restart in place: no answer from algo-2" in world.log("algo-1")
    assert world.failure("algo-1")["class"] == "hang"


@needs_mpi
def test_a_rank_that_freezes_is_dumped_and_all_start_again_in_place(
    tmp_path: Path, worlds: Callable[..., NetWorld], shim: str  # noqa: F811
) -> None:  # fmt: skip
    world = steps_world(tmp_path, worlds, shim, 2, "rank freezes", restartsInPlace=1, silence=5)
    assert world.wait() == [0, 0], logs(world)
    for host in world.hosts:
        assert world.events(host, "restart")[0]["reason"].startswith("no progress for")
        assert 'File "train.py"' in world.log(host), "the stacks of every rank are in the log"


@needs_mpi
def test_sigterm_to_process_1_of_every_host_lets_all_ranks_save(
    tmp_path: Path, worlds: Callable[..., NetWorld], shim: str  # noqa: F811
) -> None:  # fmt: skip
    world = steps_world(tmp_path, worlds, shim, 2, "waits")
    world.wait_for("algo-1", '"step":3')
    for host in world.hosts:
        world.send(host, signal.SIGTERM)
    assert world.wait() == [0, 0], logs(world)
    assert [world.log(host).count("saved") for host in world.hosts] == [1, 1]


@pytest.mark.torch
@pytest.mark.slow
def test_torchrun_meets_over_the_network_of_the_hosts(tmp_path: Path, worlds: Callable[..., NetWorld]) -> None:
    pytest.importorskip("torch")
    script = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(total)
print("total", int(total), os.environ["LOCAL_RANK"], os.environ["MASTER_ADDR"], flush=True)
dist.destroy_process_group()
"""
    world = worlds(tmp_path, 2, job_json(launcher="torchrun"), {"train.py": script})
    world.start({"PYTHONPATH": ":".join(entry for entry in sys.path if "site-packages" in entry)})
    assert world.wait() == [0, 0], logs(world)
    for rank, host in enumerate(world.hosts):
        assert f"[rank {rank}] total 3 0 algo-1" in world.log(host)
