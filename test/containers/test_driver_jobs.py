"""Whole jobs under the driver with plain scripts: one process per host, real signals, real files."""

import json
import signal
import time
from pathlib import Path

import pytest

from fake_s3 import FakeS3
from fake_world import NETWORK, FakeWorld, job_json

pytestmark = pytest.mark.jobs

NASTY = ["--a b", "quote ' and \" double", "; touch /tmp/never; $HOME `id` $(id)", "new\nline", "ünïcode — 漢字", "", "*"]

DUMP = """
import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}))
"""


def dumped(world: FakeWorld, host: str = "algo-1") -> dict:
    return next(json.loads(line) for line in world.log(host).splitlines() if line.startswith('{"argv"'))


def test_a_script_gets_its_arguments_and_environment_untouched(tmp_path: Path) -> None:
    job = job_json(arguments=NASTY, env={"SM_HOSTS": "mine", "TRICKY": "a'b;$c\nd"}, userPinned=["SM_HOSTS", "TRICKY"])
    world = FakeWorld(tmp_path, 2, job, {"train.py": DUMP}, hyperparameters={"lr": "0.1", "text": NASTY[2], "flag": "true"})
    world.start()
    assert world.wait() == [0, 0], world.log("algo-1")
    found = dumped(world, "algo-2")
    assert found["argv"] == NASTY
    assert found["cwd"] == str(world.base("algo-2") / "code")
    env = found["env"]
    assert (env["SM_HOSTS"], env["TRICKY"]) == ("mine", "a'b;$c\nd")
    assert (env["SM_HP_LR"], env["SM_HP_TEXT"], env["SM_HP_FLAG"]) == ("0.1", NASTY[2], "true")
    assert (env["SM_CURRENT_HOST"], env["SM_CHANNELS"], env["MASTER_ADDR"]) == ("algo-2", "[]", NETWORK + ".1")
    assert (env["SLIPWAY_RUN_ID"], env["SLIPWAY_ATTEMPT"], env["SLIPWAY_RESUME_FROM"]) == ("tiny-261121120000", "1", "")
    assert 3300 < float(env["SLIPWAY_DEADLINE"]) - time.time() < 3600
    assert not Path("/tmp/never").exists()


def test_fails_with_the_script_s_own_code_and_its_error(tmp_path: Path) -> None:
    world = FakeWorld(tmp_path, 1, job_json(), {"train.py": "print('working')\nraise ValueError('the data is odd')\n"})
    world.start()
    assert world.wait() == [1]
    failure = world.failure("algo-1")
    assert (failure["class"], failure["code"], failure["host"]) == ("user-code", 1, "algo-1")
    assert failure["reason"] == "ValueError: the data is odd"
    assert "Traceback" in (world.base("algo-1") / "output/failure").read_text()
    assert world.events("algo-1", "exit")[0]["class"] == "user-code"


def test_a_failure_file_that_the_script_wrote_stays_first(tmp_path: Path) -> None:
    script = "import os, sys\nopen(os.environ['SM_OUTPUT_FAILURE'], 'w').write('see ticket 12')\nsys.exit(9)\n"
    world = FakeWorld(tmp_path, 1, job_json(), {"train.py": script})
    world.start()
    assert world.wait() == [9]
    lines = (world.base("algo-1") / "output/failure").read_text().splitlines()
    assert lines[0] == "see ticket 12"
    assert json.loads(lines[1])["code"] == 9


def test_fails_with_77_before_anything_starts_when_the_code_is_not_what_was_launched(tmp_path: Path) -> None:
    job = job_json(digests={"code": "0" * 64, "requirements": None})
    world = FakeWorld(tmp_path, 1, job)
    channel = world.base("algo-1") / "input/data/code"
    channel.mkdir()
    (channel / "x.tar.gz").write_bytes(b"not what was launched")
    world.start()
    assert world.wait() == [77]
    assert "must have digest 000" in world.failure("algo-1")["reason"]
    assert world.events("algo-1", "inventory") == []


def test_sigterm_reaches_the_script_and_what_it_saves_counts(tmp_path: Path) -> None:
    script = """
import os, signal, sys, time
def save(*_):
    time.sleep(1)
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""
    world = FakeWorld(tmp_path, 1, job_json(), {"train.py": script})
    world.start()
    world.wait_for("algo-1", "\nready\n")
    world.processes["algo-1"].send_signal(signal.SIGTERM)
    assert world.wait() == [0]
    assert world.log("algo-1").splitlines().count("saved") == 1


def test_sigterm_before_the_script_has_started_asks_to_be_tried_again(tmp_path: Path) -> None:
    world = FakeWorld(tmp_path, 1, job_json(), {"train.py": "import time\ntime.sleep(600)\n"})
    world.start()
    world.wait_for("algo-1", "ready after")
    world.processes["algo-1"].send_signal(signal.SIGTERM)
    assert world.wait()[0] in (75, 143)  # 143: the script had started, and had no handler


def test_sigterm_while_a_host_waits_for_the_name_of_another_asks_to_be_tried_again(tmp_path: Path) -> None:
    world = FakeWorld(tmp_path, 2, job_json(), {"train.py": ""})
    hosts = world.base("algo-1") / "input/config/hosts"
    hosts.write_text(hosts.read_text().splitlines()[0] + "\n")
    # No name server is asked: the name is simply not there yet.
    late = "import socket\ndef late(name):\n    print('asked for', name, flush=True)\n    raise OSError\nsocket.gethostbyname = late\n"
    (tmp_path / "sitecustomize.py").write_text(late)
    world.start({"PYTHONPATH": str(tmp_path)}, only=["algo-1"])
    world.wait_for("algo-1", "asked for algo-2")
    world.processes["algo-1"].send_signal(signal.SIGTERM)
    assert world.wait() == [75], world.log("algo-1")
    assert world.failure("algo-1")["reason"] == "stopped before the ranks had started"


def test_a_host_that_does_not_come_is_no_error_of_the_code(tmp_path: Path) -> None:
    """torchrun waits for 15 minutes; here for three seconds."""
    hurry = """
import sys
if "torch.distributed.run" in sys.orig_argv:
    from torch.distributed.launcher.api import LaunchConfig
    made = LaunchConfig.__post_init__
    def short(self):
        made(self)
        self.rdzv_configs["timeout"] = 3
    LaunchConfig.__post_init__ = short
"""
    (tmp_path / "sitecustomize.py").write_text(hurry)
    world = FakeWorld(tmp_path / "world", 2, job_json(launcher="torchrun"), {"train.py": ""}, name="driver-absent")
    world.start({"PYTHONPATH": str(tmp_path)}, only=["algo-1"])
    assert world.wait() == [75], world.log("algo-1")
    failure = world.failure("algo-1")
    assert failure["class"] == "peer-lost"
    assert failure["reason"].startswith(
        "the launchers of the hosts did not find each other: torch.distributed.DistStoreError: Timed out after"
    )


def test_an_instance_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    script = "import os, time\nprint('pid', os.getpid(), flush=True)\ntime.sleep(600)\n"
    world = FakeWorld(tmp_path, 1, job_json(), {"train.py": script})
    world.start()
    world.wait_for("algo-1", "pid ")
    pid = next(int(line.split()[1]) for line in world.log("algo-1").splitlines() if line.startswith("pid "))
    world.processes["algo-1"].kill()
    deadline = time.monotonic() + 120
    while Path(f"/proc/{pid}").exists() and "zombie" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < deadline, "the script outlived its instance"
        time.sleep(0.05)


def test_fails_with_70_and_shows_where_the_script_stands_when_progress_stops(tmp_path: Path) -> None:
    script = "import time\nprint('step=1', flush=True)\ndef stuck_here():\n    time.sleep(600)\nstuck_here()\n"
    job = job_json(progress={"stepRegex": r"step=(\d+)", "startupMinutes": 5, "silenceMinutes": 0.02})
    world = FakeWorld(tmp_path, 1, job, {"train.py": script})
    world.start()
    assert world.wait() == [70], world.log("algo-1")
    assert world.failure("algo-1")["class"] == "hang"
    assert "no progress for" in world.failure("algo-1")["reason"]
    assert "in stuck_here" in world.log("algo-1")


def test_steps_of_a_script_without_progress_lines_are_said_once_for_all_hosts(tmp_path: Path) -> None:
    script = "for step in range(1, 4):\n    print('step=%d loss=%.1f' % (step, 5 - step), flush=True)\n"
    job = job_json(progress={"stepRegex": r"step=(\d+)", "lossRegex": r"loss=([0-9.]+)", "startupMinutes": 5, "silenceMinutes": 5})
    world = FakeWorld(tmp_path, 2, job, {"train.py": script})
    world.start()
    assert world.wait() == [0, 0], world.log("algo-1")
    assert [(event["step"], event["loss"]) for event in world.events("algo-1", "step")] == [(1, 4.0), (2, 3.0), (3, 2.0)]
    assert world.events("algo-2", "step") == []


#: As Megatron-LM does it: the steps stand in the output of the last rank alone.
PRINTS_LAST = """
import os, time
if os.environ["SM_CURRENT_HOST"] == "algo-2":
    for step in range(1, 5):
        print("step=%d loss=%.1f" % (step, 5 - step), flush=True)
time.sleep(600)
"""


def test_steps_that_the_last_host_prints_are_those_of_the_run(tmp_path: Path) -> None:
    progress = {"stepRegex": r"step=(\d+)", "lossRegex": r"loss=([0-9.]+)", "startupMinutes": 5, "silenceMinutes": 0.05}
    world = FakeWorld(tmp_path, 2, job_json(progress=progress), {"train.py": PRINTS_LAST})
    world.start()
    assert world.wait()[0] == 70, world.log("algo-1")
    steps = [(event["step"], event["loss"]) for event in world.events("algo-1", "step")]
    assert steps == [(1, 4.0), (2, 3.0), (3, 2.0), (4, 1.0)]
    assert "after step 4" in world.failure("algo-1")["reason"]


def test_a_frozen_script_is_a_hang_too(tmp_path: Path) -> None:
    script = "import os, signal\nprint('step=1', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)\n"
    job = job_json(progress={"stepRegex": r"step=(\d+)", "startupMinutes": 5, "silenceMinutes": 0.02})
    world = FakeWorld(tmp_path, 1, job, {"train.py": script})
    world.start()
    assert world.wait() == [70], world.log("algo-1")


def test_a_script_without_visible_progress_is_alerted_about_and_never_stopped(tmp_path: Path) -> None:
    job = job_json(env={"SLIPWAY_WATCHDOG_SECONDS": "0.5"})
    world = FakeWorld(tmp_path, 1, job, {"train.py": "import time\ntime.sleep(3)\nprint('done')\n"})
    world.start()
    assert world.wait() == [0]
    alerts = world.events("algo-1", "hang")
    assert len(alerts) == 1 and alerts[0]["alertOnly"] is True


def test_hosts_outside_the_training_groups_run_the_script_too_and_see_the_groups(tmp_path: Path) -> None:
    groups = [
        {"instance_group_name": "gpu", "instance_type": "ml.p4d.24xlarge", "hosts": ["algo-2"]},
        {"instance_group_name": "cpu", "instance_type": "ml.c5.18xlarge", "hosts": ["algo-1"]},
    ]
    world = FakeWorld(tmp_path, 2, job_json(trainingGroups=["gpu"]), {"train.py": DUMP}, groups=groups)
    world.start()
    assert world.wait() == [0, 0], world.log("algo-1")
    data_host, training_host = dumped(world, "algo-1")["env"], dumped(world, "algo-2")["env"]
    assert (data_host["SM_CURRENT_INSTANCE_GROUP"], training_host["SM_CURRENT_INSTANCE_GROUP"]) == ("cpu", "gpu")
    assert data_host["MASTER_ADDR"] == NETWORK + ".2"
    assert training_host["SM_IS_HETERO"] == "true"


def test_the_first_host_writes_a_heartbeat_with_its_role_s_credentials(tmp_path: Path) -> None:
    s3 = FakeS3()
    try:
        job = job_json(heartbeatUri="s3://checkpoints/runs/default/tiny/heartbeat.json")
        world = FakeWorld(tmp_path, 2, job, {"train.py": 'import time\nprint(\'slipway {"event":"step","step":5}\')\ntime.sleep(1)\n'})
        world.start(s3.environ)
        assert world.wait() == [0, 0], world.log("algo-1")
        heartbeat = json.loads(s3.objects["/checkpoints/runs/default/tiny/heartbeat.json"])
        assert (heartbeat["attempt"], heartbeat["hosts"]) == (1, 2)
        assert abs(heartbeat["at"] - time.time()) < 60
        assert all(request.startswith("PUT /checkpoints/runs/default/tiny/heartbeat.json") for request in s3.requests)
    finally:
        s3.close()


def test_a_heartbeat_that_cannot_be_written_does_not_end_training(tmp_path: Path) -> None:
    world = FakeWorld(tmp_path, 1, job_json(heartbeatUri="s3://b/heartbeat.json"), {"train.py": "print('fine')\n"})
    world.start()
    assert world.wait() == [0]
    assert "heartbeat could not be written: the container has no credentials" in world.log("algo-1")


def test_a_shell_script_is_an_entry_point_too(tmp_path: Path) -> None:
    job = job_json(entryPoint="run.sh", arguments=["a b", "$HOME"])
    world = FakeWorld(tmp_path, 1, job, {"run.sh": 'printf "%s|" "$@"; echo; exit 4\n'})
    world.start()
    assert world.wait() == [4]
    assert "a b|$HOME|" in world.log("algo-1")


@pytest.mark.parametrize("broken", ["", "[]", '{"schema":1}'])
def test_fails_with_77_for_a_job_file_that_cannot_be_used(tmp_path: Path, broken: str) -> None:
    world = FakeWorld(tmp_path, 1, job_json(), {"train.py": ""})
    (world.base("algo-1") / "input/data/job/job.json").write_text(broken)
    world.start()
    assert world.wait() == [77]
    assert world.failure("algo-1")["class"] == "environment"


def test_fails_with_77_and_a_reason_when_the_driver_itself_fails(tmp_path: Path) -> None:
    world = FakeWorld(tmp_path, 1, job_json(env={"SLIPWAY_RESTART": "soon"}), {"train.py": ""})
    world.start()
    assert world.wait() == [77]
    assert world.failure("algo-1")["reason"] == "the driver failed: ValueError: invalid literal for int() with base 10: 'soon'"
    assert "Traceback" in world.log("algo-1")


def test_fails_with_77_for_seconds_that_are_none_and_names_all_of_them(tmp_path: Path) -> None:
    variables = {
        "SLIPWAY_WATCHDOG_SECONDS": "soon",
        "SLIPWAY_GPU_SECONDS": "0",
        "SLIPWAY_PROBE_SECONDS": "0",
        "SLIPWAY_HAND_OVER_SECONDS": "",
    }
    world = FakeWorld(tmp_path, 1, job_json(env=variables), {"train.py": ""})
    world.start()
    assert world.wait() == [77]
    assert world.failure("algo-1")["reason"] == (
        "environmentVariables.SLIPWAY_GPU_SECONDS: must be a number of at least 0.1, got 0; leave it out; "
        "environmentVariables.SLIPWAY_WATCHDOG_SECONDS: must be a number of at least 0.01, got soon; leave it out"
    )
    assert "Traceback" not in world.log("algo-1")


def test_a_rank_that_floods_its_log_is_cut_down_and_its_progress_is_not(tmp_path: Path) -> None:
    script = 'for n in range(20000):\n    print(\'noise\', n)\nprint(\'slipway {"event":"step","step":1}\')\n'
    world = FakeWorld(tmp_path, 1, job_json(), {"train.py": script})
    world.start()
    assert world.wait() == [0]
    assert 2000 <= world.log("algo-1").count("noise") < 3000
    assert [event["step"] for event in world.events("algo-1", "step")] == [1]


def wheel(folder: Path) -> Path:
    """A wheel of one module, made by hand: nothing is fetched."""
    import zipfile

    folder.mkdir(parents=True)
    info = "tiny_slipway_fixture-1.0.dist-info"
    made = folder / "tiny_slipway_fixture-1.0-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as opened:
        opened.writestr("tiny_slipway_fixture.py", "VALUE = 42\n")
        opened.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-slipway-fixture\nVersion: 1.0\n")
        opened.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        opened.writestr(f"{info}/RECORD", "")
    return made


@pytest.mark.parametrize(("wanted", "code"), [("tiny-slipway-fixture==1.0", 0), ("tiny-slipway-fixture==2.0", 77)])
def test_requirements_come_from_the_wheels_channel_and_nowhere_else(tmp_path: Path, wanted: str, code: int) -> None:
    wheel(tmp_path / "wheels")
    files = {"train.py": "import tiny_slipway_fixture as t\nprint('value', t.VALUE)\n", "requirements.txt": wanted}
    world = FakeWorld(tmp_path / "world", 1, job_json(requirements="requirements.txt"), files)
    world.add_channel("wheels", tmp_path / "wheels")
    target = tmp_path / "site"
    world.start({"PIP_TARGET": str(target), "PYTHONPATH": str(target), "PIP_INDEX_URL": "http://127.0.0.1:1/"})
    assert world.wait() == [code], world.log("algo-1")
    if code == 0:
        assert "value 42" in world.log("algo-1")
    else:
        assert "could not be installed from the wheels of channel wheels: ERROR" in world.failure("algo-1")["reason"]


def test_a_relative_wheel_is_found_beside_the_code(tmp_path: Path) -> None:
    built = wheel(tmp_path / "wheels")
    packed = f"wheels/{built.name}"
    files = {"train.py": "import tiny_slipway_fixture as t\nprint('value', t.VALUE)\n", "env/needs.txt": f"./{packed}\n"}
    world = FakeWorld(tmp_path / "world", 1, job_json(requirements="env/needs.txt"), {**files, packed: built.read_bytes()})
    target = tmp_path / "site"
    world.start({"PIP_TARGET": str(target), "PYTHONPATH": str(target), "PIP_NO_INDEX": "1"})
    assert world.wait() == [0], world.log("algo-1")
    assert "value 42" in world.log("algo-1")
