"""The Ray launcher: the words of `ray start`, and whole jobs over several hosts under the Ray of PyPI, started by the drivers."""

import importlib.util
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from fake_world import REPOSITORY, FakeWorld, job_json
from slipway_driver import launchers
from slipway_driver.cluster import parse_cluster
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import DriverError
from slipway_driver.job import parse_job
from slipway_driver.rank_session import is_running
from slipway_driver.ray_cluster import __main__ as worker
from slipway_driver.ray_cluster import head, launch

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray: run npm run test:ray")
GIB = 2**30
#: Of all jobs here; goes with the process. pytest's own folders have names too long for Ray's sockets.
SHORT = tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True)


def cluster(hosts: int = 2):
    names = ["algo-%d" % (number + 1) for number in range(hosts)]
    return parse_cluster({"hosts": names, "current_host": "algo-1", "current_instance_type": "ml.p5.48xlarge"}, [])


def ray_job(**more: object):
    return parse_job(job_json(**{"launcher": "ray", **more}))


@pytest.mark.parametrize(
    ("memory", "shared", "nodes_here", "expected"),
    [
        (100 * GIB, 500 * GIB, 1, 30 * GIB),  # Ray's own share of the memory
        (2000 * GIB, 10 * GIB, 1, 8 * GIB),  # no more than /dev/shm holds beside NCCL's buffers
        (2000 * GIB, 2000 * GIB, 1, 200 * 10**9),
        (100 * GIB, 500 * GIB, 2, 15 * GIB),
        (100 * GIB, 64 * 2**20, 1, None),  # Docker's default: Ray refuses so little
    ],
)
def test_the_object_store_fits_the_memory_and_the_container_s_shared_memory(memory, shared, nodes_here, expected) -> None:
    assert launch.object_store_bytes(memory, shared, nodes_here) == expected


def test_a_limit_of_the_container_counts_and_no_limit_does_not(tmp_path: Path) -> None:
    info, limit = tmp_path / "meminfo", tmp_path / "memory.max"
    info.write_text("MemTotal: 900 kB\nMemAvailable: 400 kB\n")
    assert launch.memory_bytes(info, limit) == 400 * 1024
    for text, expected in (("max\n", 400 * 1024), ("1000\n", 1000)):
        limit.write_text(text)
        assert launch.memory_bytes(info, limit) == expected


def test_a_long_temporary_folder_is_not_used_for_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    for usual, expected in (("/tmp/slw-abcdef", "/tmp/slw-abcdef"), ("/opt/ml/some/long/folder/of/a/job", "/tmp")):
        monkeypatch.setattr(launch.tempfile, "gettempdir", lambda usual=usual: usual)
        assert launch.temporary_folder() == expected


def test_options_of_the_run_file_replace_ours_and_resources_are_merged() -> None:
    given = {"object_store_memory": 7, "resources": {"trainer": 2}, "include-dashboard": True}
    found = launch.start_words(["--head"], "algo-1", {"object-store-memory": 5, "num-cpus": 4, "node-ip-address": None}, given)
    assert found == [
        sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--head", "--object-store-memory=7", "--num-cpus=4",
        "--include-dashboard=true", '--resources={"host:algo-1":1,"trainer":2}',
    ]  # fmt: skip


def test_fails_where_a_parameter_is_an_option_of_the_driver_s() -> None:
    with pytest.raises(DriverError, match="that the driver sets itself, got node_ip_address, port; remove them"):
        job = ray_job(distribution={"library": "custom", "parameters": {"port": 1, "node_ip_address": "x", "num-cpus": 2}})
        launch.ray_command_of(job, cluster(), {"cpus": 4}, ["python", "x.py"])


def test_ray_may_use_as_many_gpus_as_the_run_has_processes() -> None:
    words = launch.ray_command_of(ray_job(processesPerHost=4), cluster(), {"cpus": 96, "gpus": 8}, ["a", "b c"])(Path("/state"))
    assert words[-4:] == ["/state", '{"hosts":["algo-1","algo-2"],"cpus":96,"gpus":4}', "a", "b c"]


def test_fails_without_ray_in_the_image_or_a_secret_among_several_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DriverError, match="restartSecret: must be set for launcher ray"):
        launch.ray_environment(ray_job(restartSecret=""), cluster(), {}, "algo-1", 7777)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DriverError, match="ray needs the package ray in the image") as error:
        launch.ray_environment(ray_job(), cluster(), {}, "algo-1", 7777)
    assert error.value.code == 77


def test_fails_with_spare_hosts() -> None:
    with pytest.raises(DriverError, match="0 with mpi and ray, got 1 with launcher ray"):
        ray_job(spareInstances=1)


def test_ray_s_token_is_not_the_job_s_secret_and_an_image_s_settings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "require_ray", lambda: None)
    found = launch.ray_environment(ray_job(), cluster(), {"RAY_DEDUP_LOGS": "1"}, "algo-1", 7777)
    assert found["RAY_ADDRESS"] == "algo-1:7781" and found["RAY_AUTH_MODE"] == "token" and "RAY_DEDUP_LOGS" not in found
    assert "secret" not in found["RAY_AUTH_TOKEN"] and len(found["RAY_AUTH_TOKEN"]) == 64
    assert launch.ray_environment(parse_job(job_json()), cluster(), {}, "algo-1", 7777) == {}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("(f pid=7, ip=10.0.0.2) text (x pid=1) more", "[algo-2] (f pid=7) text (x pid=1) more"),
        ("(Trainer pid=7) text", "[algo-1] (Trainer pid=7) text"),
        ("\x1b[36m(f pid=7, ip=10.0.0.2)\x1b[0m text", "[algo-2] (f pid=7) text"),
        ("(f pid=7, ip=10.0.0.9) text", "[10.0.0.9] (f pid=7) text"),
        ('(f pid=7, ip=10.0.0.2) slipway {"event":"step","step":3}', 'slipway {"event":"step","step":3}'),
        ("loss (pid=7) 3.2", "loss (pid=7) 3.2"),
    ],
)
def test_lines_of_workers_carry_the_name_of_their_host(line: str, expected: str) -> None:
    assert head.with_host(line, "algo-1", {"10.0.0.1": "algo-1", "10.0.0.2": "algo-2"}) == expected


def test_what_a_worker_repeats_is_shown_once_and_counted() -> None:
    repeats, said = head.Repeats(), "(a pid=1, ip=10.0.0.2) the dashboard is off"
    assert [repeats.shown(line) for line in (said, said, "(b pid=2) x", said)] == [[said], [], ["(b pid=2) x"], []]
    counted = "(a pid=1, ip=10.0.0.2) (the line above 2 more times)"
    assert repeats.shown("(a pid=1, ip=10.0.0.2) on") == [counted, "(a pid=1, ip=10.0.0.2) on"]
    assert repeats.shown("loss 3") == repeats.shown("loss 3") == ["loss 3"]
    step = '(a pid=1) slipway {"event":"step","step":1}'
    assert repeats.shown(step) == repeats.shown(step) == [step]


def test_each_line_about_the_network_is_shown_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(head, "write_line", said.append)
    log = tmp_path / "session_2026/logs/worker-1.out"
    log.parent.mkdir(parents=True)
    lines, line = head.NetworkLines(tmp_path), "algo-2:1:2 [0] NCCL INFO NET/OFI Selected Provider is efa (found 4 nics)"
    lines.print_new()
    log.write_text("loss 3\n" + line + "\nalgo-2:1:2 [0] NCCL INFO NET/OFI Sel")
    lines.print_new()
    lines.print_new()
    assert said == [line]
    with log.open("a") as opened:
        opened.write("ected Provider is efa (found 4 nics)\n")
    lines.print_new()
    assert said == [line, line]


class EndedNode:
    """A node of Ray that serves for a few polls."""

    def __init__(self, folder: Path, polls: int) -> None:
        self.folder, self._polls = folder, polls

    @property
    def code(self) -> int | None:
        self._polls -= 1
        return None if self._polls >= 0 else 1

    def unexpected_end(self, host: str) -> Failure:
        return Failure(75, "hardware", None, "ended", [], host)

    def stop(self) -> None:
        pass


def test_a_worker_looks_for_network_lines_at_its_interval_and_once_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nobody:
        def send(self, kind: str, content: object) -> None:
            pass

    calls: list[int] = []
    monkeypatch.setattr(worker, "CHECK_SECONDS", float("inf"))
    monkeypatch.setattr(worker, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(worker, "RayNode", lambda words, environ: EndedNode(tmp_path, polls=5))
    monkeypatch.setattr(head.NetworkLines, "print_new", lambda self: calls.append(1))
    settings = SimpleNamespace(words=lambda head: [], host="algo-2")
    assert worker.Worker(settings, tmp_path, {})._serve(Nobody()) == 75
    assert len(calls) == 1


def test_a_host_that_is_none_of_the_launch_does_not_stand_for_one_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry point must not start before all hosts of the launch have joined."""
    found = SimpleNamespace(addresses={"algo-1": "10.0.0.1", "algo-9": "10.0.0.9"}, failed=False, stop=lambda: None)
    monkeypatch.setattr(head, "JoinedHosts", lambda hosts, environ: found)
    first = head.Head.__new__(head.Head)
    first._settings = SimpleNamespace(hosts=("algo-1", "algo-2"), host="algo-1", join_seconds=0.0)
    first._state, first._environ = tmp_path, {}
    first._workers = SimpleNamespace(send=lambda *_message: None, lost=queue.Queue())
    first._node = SimpleNamespace(code=None)
    assert first._await_hosts() is None
    assert "algo-2 did not" in launchers.read_launcher_end(tmp_path).reason


def test_verl_s_script_makes_hydra_overrides_of_the_run_file_s_arguments(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nif [ "$1" = -c ]; then exec {sys.executable} "$@"; fi\nprintf "%s\\n" "$@"\n')
    python.chmod(0o755)
    channels = {"SM_CHANNEL_PROMPTS": "/prompts", "SM_CHANNEL_WEIGHTS": "/weights"}
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SM_HOSTS": '["algo-1", "algo-2"]', "SM_NUM_GPUS": "8", **channels}
    words = ["--trainer.val_before_train", "--trainer.save_freq", "-1", "--trainer.test_freq", "5", "--trainer.balance_batch"]
    command = ["bash", str(REPOSITORY / "runs/scripts/verl/grpo.sh"), *words]
    said = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[-4:] == [
        "trainer.val_before_train=true", "trainer.save_freq=-1", "trainer.test_freq=5", "trainer.balance_batch=true",
    ]  # fmt: skip
    assert "trainer.nnodes=2" in said


def test_dead_nodes_and_nodes_of_others_have_not_joined() -> None:
    alive = {"Alive": True, "NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": 4.0, "host:algo-1": 1.0, "node:10.0.0.1": 1.0}}
    dead = {"Alive": False, "NodeManagerAddress": "10.0.0.2", "Resources": {"host:algo-2": 1.0}}
    assert worker.joined([alive, dead, {"Alive": True, "NodeManagerAddress": "10.0.0.3", "Resources": {}}]) == {"algo-1": "10.0.0.1"}


def test_the_first_end_that_a_launcher_writes_is_the_one_that_counts(tmp_path: Path) -> None:
    assert launchers.read_launcher_end(tmp_path) is None
    first = Failure(75, "hardware", None, "algo-2 was lost", [], "algo-2")
    launchers.write_launcher_end(tmp_path, first)
    launchers.write_launcher_end(tmp_path, first._replace(host="algo-1"))
    assert launchers.read_launcher_end(tmp_path) == first


def ray_world(tmp_path: Path, script: str, hosts: int = 2, only: list[str] | None = None, environ: dict[str, str] | None = None,
              **job: object) -> FakeWorld:  # fmt: skip
    given = job_json(**{"launcher": "ray", "env": {"SLIPWAY_PEER_SECONDS": "5"}, **job})
    world = FakeWorld(tmp_path / "world", hosts, given, {"train.py": script, "helper.py": "NAME = 'helper'\n"}, name=f"ray-{tmp_path.name}")
    world.start({"TMPDIR": SHORT.name, **(environ or {})}, only=only)
    return world


#: A task on each host; fails in the first start and ends well in the second.
TASKS = """
import os, pathlib, sys, ray
ray.init()
hosts = sorted(name for node in ray.nodes() for name in node["Resources"] if name.startswith("host:"))
print("hosts", hosts, "cluster", ray.cluster_resources().get("CPU", 0) >= 2, flush=True)

@ray.remote(num_cpus=0)
def task():
    import helper
    print("task of", os.environ["SM_CURRENT_HOST"], os.environ["SLIPWAY_RUN_ID"], helper.NAME, flush=True)
    if os.environ["SM_CURRENT_HOST"] == "algo-2":
        print('slipway {"event":"step","step":%d}' % (1 + int(os.environ["SLIPWAY_RESTART"])), flush=True)
    return os.environ["SM_CURRENT_HOST"]

os.environ.setdefault("SLIPWAY_RESTART", "0")
print("done on", ray.get([task.options(resources={host: 1}).remote() for host in hosts]), sys.argv[1:], flush=True)
mark = pathlib.Path(os.environ["SM_MODEL_DIR"]) / "failed"
import time; time.sleep(2)  # What workers print comes a moment later.
if not mark.exists():
    mark.write_text("")
    raise ValueError("the first start fails")
"""


@needs_ray
def test_tasks_run_on_every_host_and_the_launch_starts_again_in_place(tmp_path: Path) -> None:
    world = ray_world(tmp_path, TASKS.replace('os.environ["SLIPWAY_RESTART"]', 'os.environ.get("SLIPWAY_RESTART", 0)'), arguments=["a b"],
                      restartsInPlace=1)  # fmt: skip
    assert world.wait() == [0, 0], "\n".join(world.log(host) for host in world.hosts)
    log = world.log("algo-1")
    assert log.count("hosts ['host:algo-1', 'host:algo-2'] cluster True") == 2, log
    assert log.count("done on ['algo-1', 'algo-2'] ['a b']") == 2
    for host in world.hosts:
        assert (
            sum(line.startswith(f"[{host}] (task pid=") and f"task of {host} tiny-261121120000 helper" in line for line in log.splitlines())
            == 2
        )
    assert [event["step"] for event in world.events("algo-1", "step")] == [1, 2]
    begun = [event["reason"] for event in world.events("algo-1", "restart") if event["state"] == "begin"]
    assert begun == ["ValueError: the first start fails"]
    assert [event["code"] for event in world.events("algo-2", "exit")] == [0]


@needs_ray
def test_fails_with_an_option_that_ray_start_does_not_take(tmp_path: Path) -> None:
    parameters = {"object-store-memory": "much"}
    world = ray_world(
        tmp_path, "raise SystemExit('must not start')\n", hosts=1, distribution={"library": "custom", "parameters": parameters}
    )
    assert world.wait() == [77], world.log("algo-1")
    failure = world.failure("algo-1")
    assert failure["class"] == "environment"
    assert failure["reason"].startswith("distribution.parameters: ray start rejected an option: ") and "much" in failure["reason"]


@needs_ray
def test_the_entry_point_s_exit_code_ends_all_hosts_and_only_its_host_is_blamed(tmp_path: Path) -> None:
    world = ray_world(tmp_path, "import sys\nraise SystemExit('no such data')\n")
    assert world.wait() == [1, 75], "\n".join(world.log(host) for host in world.hosts)
    assert (world.failure("algo-1")["class"], world.failure("algo-2")["class"]) == ("user-code", "peer-lost")


WAITS = """
import os, signal, sys, time, ray
ray.init()

@ray.remote(num_cpus=0, resources={"host:algo-2": 1})
class Keeper:
    def save(self):
        return os.getpid()

keeper = Keeper.remote()
def save(*_):
    print("saved with", ray.get(keeper.save.remote()) > 0, flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
ray.get(keeper.save.remote())
print("all set", flush=True)
while True:
    time.sleep(0.2)
    if "poll" in sys.argv:
        ray.get(keeper.save.remote())
"""


def children_named(root: int, word: str) -> list[int]:
    """Processes below `root` whose command line holds `word`."""
    found, open_ = [], [root]
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents.setdefault(int((entry / "stat").read_text().rpartition(")")[2].split()[1]), []).append(int(entry.name))
            except OSError:
                continue
    while open_:
        for child in parents.get(open_.pop(), []):
            open_.append(child)
            try:
                if word in (Path("/proc") / str(child) / "cmdline").read_text():
                    found.append(child)
            except OSError:
                continue
    return found


def remaining(pids: list[int], seconds: float = 30.0) -> list[int]:
    """Those of the processes that still run after at most so many seconds."""
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


@needs_ray
def test_a_lost_host_is_broken_hardware_and_named(tmp_path: Path) -> None:
    world = ray_world(tmp_path, WAITS, arguments=["poll"])
    world.wait_for("algo-1", "all set")
    started = children_named(world.processes["algo-2"].pid, "ray")
    world.processes["algo-2"].kill()
    assert world.wait()[0] == 75, world.log("algo-1")
    failure = world.failure("algo-1")
    assert (failure["class"], failure["host"]) == ("hardware", "algo-2") and "algo-2 was lost" in failure["reason"]
    # Ray's agents look every second whether their node manager is still there.
    assert started and remaining(started) == [], "nothing outlives its driver"


@needs_ray
def test_a_node_of_ray_that_ends_by_itself_is_reported_by_its_own_host(tmp_path: Path) -> None:
    world = ray_world(tmp_path, WAITS)
    world.wait_for("algo-1", "all set")
    (raylet,) = children_named(world.processes["algo-2"].pid, "raylet/raylet")
    os.kill(raylet, signal.SIGKILL)
    assert world.wait() == [75, 75], "\n".join(world.log(host) for host in world.hosts)
    assert (world.failure("algo-2")["class"], world.failure("algo-1")["class"]) == ("hardware", "peer-lost")
    assert "Ray's processes exited" in world.failure("algo-2")["reason"]


@needs_ray
def test_sigterm_lets_the_entry_point_save_while_all_nodes_still_serve(tmp_path: Path) -> None:
    world = ray_world(tmp_path, WAITS)
    world.wait_for("algo-1", "all set")
    for host in reversed(world.hosts):
        world.processes[host].send_signal(signal.SIGTERM)
    assert world.wait() == [0, 0], "\n".join(world.log(host) for host in world.hosts)
    assert "saved with True" in world.log("algo-1")


@needs_ray
def test_a_host_that_never_joins_is_named(tmp_path: Path) -> None:
    world = ray_world(tmp_path, "raise SystemExit('must not start')\n", only=["algo-1"], environ={"SLIPWAY_RAY_JOIN_SECONDS": "3"})
    assert world.wait() == [75], world.log("algo-1")
    failure = world.failure("algo-1")
    assert (failure["class"], failure["host"]) == ("try-again", "algo-2")
    assert failure["reason"] == "hosts must join Ray within 3 s; algo-2 did not"


def trained(folder: Path, example: str, arguments: list[str]) -> tuple[FakeWorld, list[tuple[int, float]]]:
    """A job of two hosts that ended well, and the loss of each of its steps."""
    world = ray_world(folder, example, arguments=arguments, progress={"stepRegex": r"step=(\d+)"})
    assert world.wait() == [0, 0], "\n".join(world.log(host) for host in world.hosts)
    return world, [(int(step), float(loss)) for step, loss in re.findall(r"step=(\d+) loss=([\d.]+)", world.log("algo-1"))]


@needs_ray
@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_the_example_of_ray_train_learns_over_two_hosts(tmp_path: Path) -> None:
    example = (REPOSITORY / "runs/scripts/ray-train/train.py").read_text()
    arguments = ["--steps", "6", "--save-every", "3", "--checkpoints", str(tmp_path / "checkpoints")]
    world, found = trained(tmp_path / "first", example, arguments)
    assert [step for step, _ in found] == [1, 2, 3, 4, 5, 6]
    assert found[-1][1] < found[0][1] - 0.5, found
    assert "node_rank=1" in world.log("algo-1"), "one worker on each host"
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-3.pt", "step-6.pt"]
    (tmp_path / "checkpoints/step-6.pt").unlink()
    _, again = trained(tmp_path / "again", example, arguments)
    assert again == found[3:], "all workers continue with the moments of the checkpoint"
