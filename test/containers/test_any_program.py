"""Whole jobs with programs as people write them: bars, broken event lines, shell scripts, pipelines, full disks."""

import hashlib
import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_s3 import FakeS3
from fake_world import FakeWorld, job_json

pytestmark = pytest.mark.jobs

BAR = {"stepRegex": r"(\d+)/\d+ \[", "startupMinutes": 5, "silenceMinutes": 5}
#: A handler as in the documentation: save, say so, leave.
SAVES = """
import signal, sys, time
def save(*_):
    time.sleep(1)
    print("SAVED", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready for", sys.argv[1:], flush=True)
while True:
    time.sleep(0.05)
"""


def world_of(folder: Path, files: dict[str, str], environ: dict[str, str] | None = None, **job: object) -> FakeWorld:
    """A started job of one host; its entry point is run.sh where there is one."""
    entry = "run.sh" if "run.sh" in files else "train.py"
    world = FakeWorld(folder, 1, job_json(**{"entryPoint": entry, **job}), files)
    world.start(environ)
    return world


def steps_of(world: FakeWorld) -> list[int]:
    return [event["step"] for event in world.events("algo-1", "step")]


def stop(world: FakeWorld, after: str) -> None:
    world.wait_for("algo-1", after)
    world.processes["algo-1"].send_signal(signal.SIGTERM)


def test_every_state_of_a_redrawn_bar_is_a_step_and_the_bar_one_line(tmp_path: Path) -> None:
    script = """
import sys
for step in range(1, 41):
    sys.stderr.write("\\r %3d%%|##   | %d/40 [00:01<00:09, 9.9it/s]" % (step * 100 // 40, step))
    sys.stderr.flush()
sys.stderr.write("\\n")
"""
    world = world_of(tmp_path, {"train.py": script}, progress=BAR)
    assert world.wait() == [0], world.log("algo-1")
    assert steps_of(world) == list(range(1, 41))
    drawn = re.findall(r"\d+/40 \[", world.log("algo-1"))
    assert drawn == ["40/40 ["]


def test_a_bar_without_any_newline_is_progress_while_it_is_drawn(tmp_path: Path) -> None:
    script = """
import os, sys, time
for step in range(1, 31):
    sys.stderr.write("\\r step %d/30 [" % step)
    sys.stderr.flush()
    while step == 20 and not os.path.exists("go"):
        time.sleep(0.05)
"""
    world = world_of(tmp_path, {"train.py": script}, progress=BAR)
    world.wait_for("algo-1", '"step":19}')
    (world.base("algo-1") / "code/go").touch()
    assert world.wait() == [0], world.log("algo-1")
    assert steps_of(world) == list(range(1, 31))


def test_a_question_without_a_newline_is_seen_in_the_log_while_the_program_waits(tmp_path: Path) -> None:
    script = "import sys, time\nsys.stdout.write('Proceed ([y]/n)? ')\nsys.stdout.flush()\ntime.sleep(600)\n"
    world = world_of(tmp_path, {"train.py": script})
    world.wait_for("algo-1", "Proceed ([y]/n)?")
    world.kill()


@pytest.mark.parametrize(
    "broken",
    [
        '{"event":"step","step":null}',
        '{"event":"step","step":NaN}',
        '{"event":"step","step":"12/100"}',
        '{"event":"step","step":1e400}',
        '{"event":"phase","name":{"a":1},"budgetSeconds":"10m"}',
        '{"event":"step"',
        '{"event":7}',
        '{"event":"step","step":2,"pad":"' + "x" * 70_000 + '"}',
        '{"event":' + "[" * 30_000,
    ],
)
def test_an_event_line_that_cannot_be_read_is_said_once_and_training_goes_on(tmp_path: Path, broken: str) -> None:
    script = f"""
import json
line = "slipway " + {broken!r}
print('slipway {{"event":"step","step":1}}')
for step in range(3):
    print(line)
for step in range(2, 1500):
    print('slipway {{"event":"step","step":%d}}' % step, flush=True)
print("THE END", flush=True)
"""
    world = world_of(tmp_path, {"train.py": script}, {"SLIPWAY_WATCHDOG_SECONDS": "30"})
    assert world.wait() == [0], world.log("algo-1")[-2000:]
    assert "THE END" in world.log("algo-1")
    assert steps_of(world) == [1, *range(2, 1500)]
    assert world.log("algo-1").count("cannot be read") == 1


def test_a_step_keeps_counting_when_its_loss_is_nan(tmp_path: Path) -> None:
    script = 'print(\'slipway {"event":"step","step":4,"loss":NaN,"mfu":0.5}\', flush=True)\n'
    world = world_of(tmp_path, {"train.py": script})
    assert world.wait() == [0]
    assert world.events("algo-1", "step") == [{"event": "step", "step": 4, "mfu": 0.5}]


def test_the_child_of_a_shell_script_gets_the_stop_and_its_time(tmp_path: Path) -> None:
    world = world_of(tmp_path, {"run.sh": "python3 train.py --a\necho not reached\n", "train.py": SAVES})
    stop(world, "ready for")
    assert world.wait() == [0], world.log("algo-1")
    assert world.log("algo-1").splitlines().count("SAVED") == 1
    assert "not reached" not in world.log("algo-1")


@pytest.mark.parametrize(
    "shell",
    [
        "python3 train.py 2>&1 | tee log.txt\n",
        "trap 'echo cleaning' TERM\npython3 train.py\n",
        "bash -c 'python3 train.py; true'\n",
        "python3 train.py &\nwait\n",
        "set -e\nexec python3 train.py\n",
        # Both give the program a process group of its own.
        "timeout 500 python3 train.py\n",
        "set -m\npython3 train.py &\nwait\n",
        "python3 -c 'import subprocess, sys; sys.exit(subprocess.call([sys.executable, \"train.py\"]))'\n",
    ],
)
def test_a_stop_reaches_the_program_behind(tmp_path: Path, shell: str) -> None:
    world = world_of(tmp_path, {"run.sh": shell, "train.py": SAVES})
    stop(world, "ready for")
    world.wait()
    assert world.log("algo-1").splitlines().count("SAVED") == 1, world.log("algo-1")


def test_workers_of_a_program_that_saves_are_not_killed_under_it(tmp_path: Path) -> None:
    script = """
import multiprocessing, signal, sys, time
def work(queue):
    while True:
        queue.put(1)
queue = multiprocessing.get_context("fork").Queue(2)
worker = multiprocessing.get_context("fork").Process(target=work, args=(queue,), daemon=True)
worker.start()
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
print("ready", flush=True)
while not asked:
    queue.get()
time.sleep(0.5)
print("worker alive", worker.is_alive(), flush=True)
sys.exit(0)
"""
    world = world_of(tmp_path, {"run.sh": "python3 -u train.py\n", "train.py": script})
    stop(world, "ready\n")
    assert world.wait() == [0], world.log("algo-1")
    assert "worker alive True" in world.log("algo-1")


def test_nothing_of_a_rank_s_group_outlives_its_job(tmp_path: Path) -> None:
    world = world_of(tmp_path, {"run.sh": "python3 -c 'import time; time.sleep(600)' &\necho child $!\nexit 3\n"})
    assert world.wait() == [3], world.log("algo-1")
    pid = int(next(line.split()[1] for line in world.log("algo-1").splitlines() if line.startswith("child ")))
    state = Path(f"/proc/{pid}/status")
    assert not state.exists() or "zombie" in state.read_text()


def test_a_pipeline_that_hides_a_traceback_ends_early(tmp_path: Path) -> None:
    s3 = FakeS3()
    try:
        files = {"run.sh": "python3 train.py 2>&1 | tee log.txt\n", "train.py": "raise RuntimeError('no data')\n"}
        world = world_of(tmp_path, files, s3.environ, heartbeatUri="s3://checkpoints/runs/default/tiny/heartbeat.json")
        assert world.wait() == [0], world.log("algo-1")
        said = "exit code 0 after an unhandled error: RuntimeError: no data"
        (end,) = world.events("algo-1", "exit")
        assert (end["code"], end["class"], end["notice"], end["reason"]) == (0, "done", "ended-early", said)
        assert json.loads(s3.objects["/checkpoints/runs/default/tiny/heartbeat.json"])["endedEarly"] == said
    finally:
        s3.close()


@pytest.mark.parametrize(
    ("printed", "job", "said"),
    [
        ([1, 2, 3], {"training": {"steps": 100}}, "exit code 0 after step 3 of 100"),
        ([98, 99], {"training": {"steps": 100}}, None),
        ([80, 90], {"training": {"steps": 100}}, None),
        ([1, 2], {"training": {}}, None),
        ([], {"training": {"steps": 100}}, None),
        ([1, 2], {"training": {"steps": 100}, "env": {"SLIPWAY_SMOKE": "1"}}, None),
        ([], {"training": {"steps": 100}, "progress": BAR}, "exit code 0 before step 1 of 100"),
    ],
)
def test_an_end_with_0_is_early_only_when_steps_are_missing(tmp_path: Path, printed: list[int], job: dict, said: str | None) -> None:
    script = f'for step in {printed}:\n    print(\'slipway {{"event":"step","step":%d}}\' % step)\n'
    world = world_of(tmp_path, {"train.py": script}, **job)
    assert world.wait() == [0], world.log("algo-1")
    (end,) = world.events("algo-1", "exit")
    assert (end.get("notice"), end.get("reason")) == (said and "ended-early", said)


def test_a_traceback_from_which_the_program_went_on_is_not_an_early_end(tmp_path: Path) -> None:
    script = """
import sys, traceback
try:
    raise OSError("bucket is slow")
except OSError:
    traceback.print_exc()
for n in range(10):
    print("batch", n, file=sys.stderr)
"""
    world = world_of(tmp_path, {"train.py": script})
    assert world.wait() == [0]
    assert "notice" not in world.events("algo-1", "exit")[0]


@pytest.mark.parametrize(
    ("rest", "code", "reason"),
    [
        ("print('bye')", 0, None),
        ("raise RuntimeError('cuda error')", 1, "RuntimeError: cuda error"),
        ("raise SystemExit(72)", 72, "exit code 72"),
    ],
)
def test_the_program_s_own_end_counts_when_nothing_can_be_written(tmp_path: Path, rest: str, code: int, reason: str | None) -> None:
    # The records of the ranks are files of the temporary folder, which is full: a folder in their place behaves in the same way.
    fill = """
import glob, os
(state,) = glob.glob(os.environ["TMPDIR"] + "/slipway-ranks-*")
os.mkdir(state + "/rank-0.json.tmp")
os.mkdir(os.environ["SAGEMAKER_BASE_DIR"] + "/output/data/efa.json")
"""
    (tmp_path / "tmp").mkdir()
    script = fill + f'print(\'slipway {{"event":"step","step":1}}\', flush=True)\n{rest}\n'
    world = world_of(tmp_path / "world", {"train.py": script}, {"TMPDIR": str(tmp_path / "tmp")})
    assert world.wait() == [code], world.log("algo-1")
    if reason:
        assert (world.failure("algo-1")["code"], world.failure("algo-1")["reason"]) == (code, reason)


def test_a_stop_reaches_the_program_when_nothing_can_be_written(tmp_path: Path) -> None:
    # Neither the process id nor the mark of a stop fits on the disk.
    broken = """
import errno, os, pathlib
real = pathlib.Path.touch, pathlib.Path.write_text
def touch(path, *a, **k):
    if path.name == "stopping": raise OSError(errno.ENOSPC, "No space left on device")
    return real[0](path, *a, **k)
def write_text(path, *a, **k):
    if path.name.startswith("rank-"): raise OSError(errno.ENOSPC, "No space left on device")
    return real[1](path, *a, **k)
pathlib.Path.touch, pathlib.Path.write_text = touch, write_text
"""
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(broken)
    world = world_of(tmp_path / "world", {"run.sh": "python3 train.py\n", "train.py": SAVES}, {"PYTHONPATH": str(tmp_path / "site")})
    stop(world, "ready for")
    assert world.wait() == [0], world.log("algo-1")
    assert "SAVED" in world.log("algo-1")


def test_a_rank_that_ignores_the_stop_is_said_to_have_been_killed(tmp_path: Path) -> None:
    hurry = """
import sys
if "slipway_driver" in sys.orig_argv:
    import slipway_driver.supervisor as supervisor
    supervisor.GRACE_SECONDS = 1.0
"""
    (tmp_path / "sitecustomize.py").write_text(hurry)
    script = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(600)\n"
    world = world_of(tmp_path / "world", {"train.py": script}, {"PYTHONPATH": str(tmp_path)})
    stop(world, "ready\n")
    assert world.wait() == [75], world.log("algo-1")
    assert world.failure("algo-1")["reason"] == "the ranks had not ended 1 s after SIGTERM and were killed"


def test_a_killed_wrapper_is_not_an_end_before_the_ranks_had_started(tmp_path: Path) -> None:
    script = """import os, signal, time
words = open("/proc/%d/cmdline" % os.getppid()).read().split("\\0")
state = words[words.index("slipway_driver.rank") + 1]
while not any(name.endswith(".pid") for name in os.listdir(state)):
    time.sleep(0.01)
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(600)
"""
    world = world_of(tmp_path, {"train.py": script})
    assert world.wait() == [137], world.log("algo-1")
    assert world.failure("algo-1")["reason"] == "killed by signal 9 (SIGKILL), which also ended the driver's process of the rank"


def test_a_shell_script_with_windows_line_endings_is_refused_in_one_line(tmp_path: Path) -> None:
    world = world_of(tmp_path, {"run.sh": "#!/bin/bash\r\nset -e\r\nfalse\r\necho must not be reached\r\n"})
    assert world.wait() == [77]
    assert world.failure("algo-1")["reason"] == (
        "code.entryPoint: must have Unix line endings, got \\r\\n on line 1 of run.sh; convert it with dos2unix or sed -i 's/\\r$//'"
    )
    assert "must not be reached" not in world.log("algo-1")


@pytest.mark.parametrize("broken", [lambda data: data[: len(data) // 2], lambda data: data[:40] + b"\xff" * 20 + data[60:]])
def test_an_archive_that_was_cut_short_or_garbled_is_refused_in_one_line(tmp_path: Path, broken: Callable[[bytes], bytes]) -> None:
    whole = FakeWorld(tmp_path / "whole", 1, job_json(), {"train.py": "print(1)\n" * 2000})
    (packed,) = (whole.base("algo-1") / "input/data/code").glob("*.tar.gz")
    data = broken(packed.read_bytes())
    digest = hashlib.sha256(data).hexdigest()
    world = FakeWorld(tmp_path / "world", 1, job_json(digests={"code": digest, "requirements": None}))
    channel = world.base("algo-1") / "input/data/code"
    channel.mkdir()
    (channel / f"{digest}.tar.gz").write_bytes(data)
    world.start()
    assert world.wait() == [77]
    assert world.failure("algo-1")["reason"].startswith("code archive: must be a readable tar.gz (")
    assert "Traceback" not in world.log("algo-1")


def test_waiting_for_the_name_of_a_host_is_said_with_the_name(tmp_path: Path) -> None:
    world = FakeWorld(tmp_path, 2, job_json(), {"train.py": ""})
    hosts = world.base("algo-1") / "input/config/hosts"
    hosts.write_text(hosts.read_text().splitlines()[0] + "\n")
    (tmp_path / "sitecustomize.py").write_text("import socket\ndef late(name):\n    raise OSError\nsocket.gethostbyname = late\n")
    world.start({"PYTHONPATH": str(tmp_path)}, only=["algo-1"])
    world.wait_for("algo-1", "waiting for 1 host name(s) to resolve: algo-2")
    world.kill()


@pytest.mark.parametrize("code", [0, 3])
def test_the_program_s_own_end_counts_when_the_output_folder_cannot_be_made(tmp_path: Path, code: int) -> None:
    world = FakeWorld(tmp_path, 1, job_json(), {"train.py": f"print('trained', flush=True)\nraise SystemExit({code})\n"})
    (world.base("algo-1") / "output").write_text("a file where the folder would be")
    world.start()
    assert world.wait() == [code], world.log("algo-1")
    assert "trained" in world.log("algo-1")
    assert world.log("algo-1").count("a folder of the job cannot be created") == 1


def test_an_event_that_is_written_in_two_parts_is_one_event(tmp_path: Path) -> None:
    script = """
import sys, time
sys.stdout.write('slipway {"event":"step",')
sys.stdout.flush()
time.sleep(2.5)
sys.stdout.write('"step":7}\\n')
"""
    world = world_of(tmp_path, {"train.py": script})
    assert world.wait() == [0], world.log("algo-1")
    assert steps_of(world) == [7]
    assert "cannot be read" not in world.log("algo-1")


def test_the_first_error_is_the_reason_when_the_clock_jumps(tmp_path: Path) -> None:
    # Each observation of the clock is two hours later than the one before, as after a correction of the host's time.
    jumps = "import itertools, time\nreal, looks = time.time, itertools.count()\ntime.time = lambda: real() + 7200 * next(looks)\n"
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(jumps)
    script = "import os\nos.write(2, b'error: the first cause\\n')\nos.write(2, b'error: what followed\\n')\nos._exit(1)\n"
    world = world_of(tmp_path / "world", {"train.py": script}, {"PYTHONPATH": str(tmp_path / "site")})
    assert world.wait() == [1], world.log("algo-1")
    assert world.failure("algo-1")["reason"] == "error: the first cause"


@pytest.mark.parametrize(("prints", "notices"), [("algo-1", ["ended-early"]), ("algo-2", [])])
def test_steps_of_another_host_prove_no_early_end(tmp_path: Path, prints: str, notices: list[str]) -> None:
    # Of a fast last host, the first one hears only a part of the steps, or too late.
    script = f"""
import os
if os.environ["SM_CURRENT_HOST"] == "{prints}":
    for step in range(1, 50):
        print('slipway {{"event":"step","step":%d}}' % step)
"""
    world = FakeWorld(tmp_path, 2, job_json(training={"steps": 100}), {"train.py": script})
    world.start()
    assert world.wait() == [0, 0], world.log("algo-1")
    assert [end["notice"] for end in world.events("algo-1", "exit") if "notice" in end] == notices
