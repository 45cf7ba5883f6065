"""Programs that people have reported elsewhere, each under the driver. test/public/driver.md says where from, and what became of them."""

import json
import re
import signal
import tempfile
from pathlib import Path

import pytest

from fake_world import FakeWorld, job_json
from slipway_driver.attempt import new_state_folder

pytestmark = pytest.mark.jobs

PROGRESS = {"stepRegex": r"(\d+)/\d+", "startupMinutes": 5, "silenceMinutes": 5}
SAVES = """
import signal, sys, time
def save(*_):
    time.sleep(0.5)
    print("SAVED", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


def run(folder: Path, files: dict[str, str], stop_after: str = "", **job: object) -> FakeWorld:
    """A job of one host that has ended; after `stop_after` in its log it gets SIGTERM."""
    entry = "run.sh" if "run.sh" in files else "train.py"
    world = FakeWorld(folder, 1, job_json(**{"entryPoint": entry, **job}), files)
    world.start()
    if stop_after:
        world.wait_for("algo-1", stop_after)
        world.processes["algo-1"].send_signal(signal.SIGTERM)
    world.wait()
    return world


def steps_of(world: FakeWorld) -> list[int]:
    return [event["step"] for event in world.events("algo-1", "step")]


def lines_of(world: FakeWorld, text: str) -> list[str]:
    """Lines of the log with the text, without those of the driver."""
    return [line for line in world.log("algo-1").splitlines() if text in line and not line.startswith("slipway")]


@pytest.mark.parametrize(
    ("report", "body", "steps", "logged"),
    [
        # A bar that takes back its text with backspaces before it draws the next state.
        ("keras-team/keras#5906", r"out('\b' * 30 + '\r' + '%2d/20 [====>.....] - loss: 0.3' % n)", 20, 1),
        # Two bars, the inner one below the outer one: each update moves the cursor down and up again.
        ("tqdm/tqdm#62", r"out('\r%2d/20 outer'% n + '\n' + '\r inner' + '\x1b[A')", 20, 3),
        # A spinner that erases its line, and ends without a newline.
        ("thin-edge/thin-edge.io#3455", r"out('\x1b[2K\x1b[1G%s %d/20 connecting' % ('|/-\\'[n % 4], n))", 20, 1),
        # Values in color, also when the output is not a terminal.
        ("Willow7737/omnia-protocol#233", r"out('step \x1b[36m%d\x1b[0m/\x1b[1m20\x1b[0m\n' % n)", 20, 20),
        # A title for the window, which a terminal does not show.
        ("MatinSenPai/Aether-GUI#30", r"out('\x1b]0;run %d of 999/9\x07%d/20\n' % (n, n))", 20, 20),
    ],
)
def test_a_program_that_draws_is_progress(tmp_path: Path, report: str, body: str, steps: int, logged: int) -> None:
    script = f"import sys\ndef out(text):\n    sys.stdout.write(text)\n    sys.stdout.flush()\nfor n in range(1, 21):\n    {body}\n"
    world = run(tmp_path, {"train.py": script}, progress=PROGRESS)
    assert steps_of(world) == list(range(1, steps + 1)), (report, world.log("algo-1"))
    assert len(lines_of(world, "/20")) <= logged, (report, world.log("algo-1"))
    assert "\x1b" not in world.log("algo-1") and "\x07" not in world.log("algo-1")


def test_the_last_words_of_a_program_are_logged_without_a_newline(tmp_path: Path) -> None:
    # moby/moby#43860
    world = run(tmp_path, {"run.sh": "echo hello; printf world\n"})
    assert {"hello", "world"} <= set(world.log("algo-1").splitlines())


@pytest.mark.parametrize(
    ("report", "shell"),
    [
        ("petuum/adaptdl#105", "/bin/sh -c 'python3 train.py'\n"),
        # The launcher itself leaves at once, and its child would go on alone.
        ("huggingface/accelerate#929", 'python3 -c \'import subprocess; subprocess.Popen(["python3", "train.py"]).wait()\'\n'),
        ("testssl/testssl.sh#743", "python3 train.py 2>&1 | tee out.log\n"),
        # A trap ends the shell's wait, and with it the shell, while its child still saves.
        ("felddy/foundryvtt-docker#1523", "set -e\ntrap 'echo trapped' TERM\npython3 train.py &\nwait\n"),
        ("docker/for-linux#81", "trap 'echo trapped' TERM\npython3 train.py\n"),
        # The launcher ignores the signal and waits for its child.
        (
            "deepspeedai/DeepSpeed#4098",
            "python3 -c 'import signal, subprocess; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
            ' subprocess.Popen(["python3", "train.py"]).wait()\'\n',
        ),
        # The trap ends the first `wait` with 143, and `set -e` the script, before it waits again.
        ("browserless/browserless#1351", "set -e\ntrap 'kill -TERM $pid' TERM\npython3 train.py &\npid=$!\nwait $pid\nwait $pid\n"),
    ],
)
def test_a_program_behind_others_saves_when_it_is_stopped(tmp_path: Path, report: str, shell: str) -> None:
    world = run(tmp_path, {"run.sh": shell, "train.py": SAVES}, stop_after="ready\n")
    assert lines_of(world, "SAVED") == ["SAVED"], (report, world.log("algo-1"))


def test_a_line_that_python_would_keep_in_its_buffer_is_logged_at_once(tmp_path: Path) -> None:
    # NVIDIA/Megatron-LM#5072
    script = "import time\nprint('iteration 3')\nwhile True:\n    time.sleep(0.05)\n"
    world = run(tmp_path, {"run.sh": "python3 train.py | cat\n", "train.py": script}, stop_after="iteration 3\n")
    assert lines_of(world, "iteration") == ["iteration 3"]


def test_orphans_do_not_pile_up_as_zombies(tmp_path: Path) -> None:
    # jedbjorn/subfloor#644: 18,000 zombies under a process 1 that waits only for its own children.
    script = """
import os, pathlib, subprocess, time
for _ in range(20):
    subprocess.run(["sh", "-c", "sleep 0.1 &"])
def is_zombie(stat):
    try:
        words = stat.read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False  # a process that ended since it was listed
    return words[0] == "Z" and words[3] == str(os.getsid(0))
def zombies():
    return sum(map(is_zombie, pathlib.Path("/proc").glob("[0-9]*/stat")))
deadline = time.monotonic() + 30
while zombies() and time.monotonic() < deadline:
    time.sleep(0.1)
print("zombies", zombies())
"""
    world = run(tmp_path, {"train.py": script})
    assert "zombies 0" in world.log("algo-1")


def test_a_run_that_stops_before_its_steps_without_an_error_says_so(tmp_path: Path) -> None:
    # EnVision-Research/Lotus#47
    script = "for n in range(1, 4):\n    print('%d/150' % n, flush=True)\n"
    world = run(tmp_path, {"train.py": script}, progress=PROGRESS, training={"steps": 150})
    assert world.events("algo-1", "exit")[0]["notice"] == "ended-early"


def test_a_program_that_prints_its_error_and_returns_0_ends_early(tmp_path: Path) -> None:
    # aws-samples/sagemaker-run-notebook#53
    script = """
import sys, traceback
try:
    raise RuntimeError("no rows")
except Exception as error:
    print("Exception during processing: " + str(error) + "\\n" + traceback.format_exc(), file=sys.stderr)
    print("output is in dummy.ipynb")
"""
    world = run(tmp_path, {"train.py": script})
    assert world.events("algo-1", "exit")[0]["reason"] == "exit code 0 after an unhandled error: RuntimeError: no rows"


LAUNCHER = """
import subprocess, sys
process = subprocess.Popen(["python3", "train.py"])
if process.wait() != 0:
    raise subprocess.CalledProcessError(returncode=process.returncode, cmd=["python3", "train.py"])
"""


@pytest.mark.parametrize(
    ("report", "files", "reason"),
    [
        ("huggingface/accelerate#4277", {"train.py": "raise ValueError('no rows')\n"}, "ValueError: no rows"),
        ("bmaltais/kohya_ss#2310", {}, "can't open file"),
    ],
)
def test_the_error_of_a_program_counts_and_not_that_of_its_launcher(
    tmp_path: Path, report: str, files: dict[str, str], reason: str
) -> None:
    world = run(tmp_path, {"run.sh": "python3 launch.py\n", "launch.py": LAUNCHER, **files})
    (end,) = world.events("algo-1", "exit")
    assert end["class"] == "user-code" and reason in end["reason"], (report, end)


def test_a_command_that_fails_without_a_word_is_the_error_itself(tmp_path: Path) -> None:
    world = run(tmp_path, {"train.py": "import subprocess\nsubprocess.run(['false'], check=True)\n"})
    (end,) = world.events("algo-1", "exit")
    assert (end["class"], end["code"]) == ("user-code", 1) and end["reason"].startswith("subprocess.CalledProcessError: ")


@pytest.mark.parametrize("program", ["srun", "deepspeed-launcher"])
def test_a_launcher_that_the_image_lacks_is_named(tmp_path: Path, program: str) -> None:
    (end,) = run(tmp_path, {"run.sh": f"{program} python3 train.py\n"}).events("algo-1", "exit")
    assert end["code"] == 127 and f"{program}: command not found" in end["reason"]


@pytest.mark.parametrize(
    ("report", "shell"),
    [
        ("docker/docs#19840", "python3 -c 'print(1)' &\npython3 train.py &\nwait -n\nexit $?\n"),
        ("a sibling", "nohup python3 train.py > log.txt 2>&1 &\n"),
    ],
)
def test_a_script_that_ends_before_its_program_says_so(tmp_path: Path, report: str, shell: str) -> None:
    world = run(tmp_path, {"run.sh": shell, "train.py": "import time\nwhile True:\n    time.sleep(0.05)\n"})
    (end,) = world.events("algo-1", "exit")
    wanted = "exit code 0 while a program that it had started was still running: python3 train.py"
    assert (end["code"], end["notice"], end["reason"]) == (0, "ended-early", wanted), report


def test_a_program_that_ends_just_after_its_script_is_no_notice(tmp_path: Path) -> None:
    (end,) = run(tmp_path, {"run.sh": "sleep 0.2 &\necho done\n"}).events("algo-1", "exit")
    assert (end["code"], end.get("notice")) == (0, None)


def test_a_handler_that_raises_saves_on_its_way_out(tmp_path: Path) -> None:
    # vllm-project/speculators#501
    script = """
import signal, time
class Interrupted(Exception): pass
def on(*_):
    raise Interrupted("signal 15")
signal.signal(signal.SIGTERM, on)
print("ready", flush=True)
try:
    while True:
        time.sleep(0.05)
finally:
    print("SAVED", flush=True)
"""
    assert lines_of(run(tmp_path, {"train.py": script}, stop_after="ready\n"), "SAVED") == ["SAVED"]


@pytest.mark.parametrize(
    ("report", "script", "shown"),
    [
        ("aws/sagemaker-python-sdk#1225", "print('root - ERROR - no column price')\nsys.exit(1)", "root - ERROR - no column price"),
        ("aws/sagemaker-python-sdk#658", "print('reading', flush=True)\nsys.exit('two values for --hidden')", "two values for --hidden"),
    ],
)
def test_the_last_words_before_a_failure_are_in_it(tmp_path: Path, report: str, script: str, shown: str) -> None:
    world = run(tmp_path, {"train.py": f"import sys\n{script}\n"})
    assert shown in (world.base("algo-1") / "output/failure").read_text(encoding="utf-8"), report


def test_a_worker_that_dies_of_short_shared_memory_is_in_the_failure(tmp_path: Path) -> None:
    # aws/sagemaker-python-sdk#5592
    script = """
try:
    raise RuntimeError("DataLoader worker (pid 5) is killed by signal: Bus error. It is possible that workers are out of shared memory.")
except RuntimeError as error:
    raise RuntimeError("DataLoader worker (pid(s) 5) exited unexpectedly") from error
"""
    world = run(tmp_path, {"train.py": script})
    assert "out of shared memory" in (world.base("algo-1") / "output/failure").read_text(encoding="utf-8")


def test_the_error_of_a_rank_behind_the_labels_of_its_launcher_is_the_reason(tmp_path: Path) -> None:
    # aws/amazon-sagemaker-examples#2029
    shell = "python3 train.py 2>&1 | sed 's/^/[1,9]<stdout>:/'\nexit ${PIPESTATUS[0]}\n"
    (end,) = run(tmp_path, {"run.sh": shell, "train.py": "import sys\nsys.no_such_thing()\n"}).events("algo-1", "exit")
    assert (end["code"], end["reason"]) == (1, "AttributeError: module 'sys' has no attribute 'no_such_thing'")


@pytest.mark.parametrize(
    ("report", "script", "reason"),
    [
        (
            "EveryVoiceTTS/EveryVoice#178",
            "import subprocess\nprint('3/10', flush=True)\nsubprocess.run(['python3', '-c', 'raise RuntimeError(\"CUDA OOM\")'])\n",
            r"no progress for \d+ s after step 3; the last error before: RuntimeError: CUDA OOM",
        ),
        (
            "facebookresearch/fairseq#4619",
            "for n in range(1, 11):\n    print('%d/10' % n, flush=True)\n",
            r"no progress for \d+ s after step 10; all 10 steps are done, and the program has not ended",
        ),
    ],
)
def test_a_hang_says_what_is_known_of_it(tmp_path: Path, report: str, script: str, reason: str) -> None:
    waits = "import time\nwhile True:\n    time.sleep(0.05)\n"
    job = {"progress": PROGRESS, "training": {"steps": 10}, "env": {"SLIPWAY_WATCHDOG_SECONDS": "0.7"}}
    (end,) = run(tmp_path, {"train.py": script + waits}, **job).events("algo-1", "exit")
    assert end["class"] == "hang" and re.fullmatch(reason, end["reason"]), (report, end)


def test_a_start_without_a_usable_temporary_folder_keeps_its_state_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    # capreolus-ir/capreolus#154
    real = tempfile.mkdtemp

    def full(prefix: str, dir: str | None = None) -> str:
        if dir is None:
            raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp', '/var/tmp', '/usr/tmp', '/']")
        return real(prefix=prefix, dir=dir)

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    folder = new_state_folder()
    assert folder.parent == Path("/dev/shm")
    folder.rmdir()


def test_a_step_of_a_flood_of_events_with_nan_is_read_and_the_log_stays_json(tmp_path: Path) -> None:
    # chainer/chainerui#16: one NaN made the whole log unreadable for its viewer.
    script = "import json\nfor n in range(1, 6):\n    print('slipway ' + json.dumps({'event': 'step', 'step': n, 'loss': float('nan')}))\n"
    world = run(tmp_path, {"train.py": script})
    found = [line for line in world.log("algo-1").splitlines() if line.startswith('slipway {"event":"step"')]
    assert [json.loads(line[len("slipway ") :], parse_constant=pytest.fail) for line in found] == [
        {"event": "step", "step": n} for n in range(1, 6)
    ]
