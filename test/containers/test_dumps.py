"""What a hang leaves behind. The script plays NCCL's part: a pipe for each rank, and a trace when something is written to it."""

import re
from pathlib import Path

import pytest

from fake_s3 import FakeS3
from fake_world import FakeWorld, job_json
from slipway_driver.dumps import ask_for_traces, keep_dumps, place_of, trace_variables

pytestmark = pytest.mark.jobs

#: As ProcessGroupNCCL does it: mkfifo, a non-blocking reader, a poll, and the pickled trace at <stem><rank>.
STUCK = """
import os, time
pipe, trace = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + "0.pipe", os.environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] + "0"
os.mkfifo(pipe)
reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
print("step=1", flush=True)
def stuck_here():
    while True:
        if os.read(reading, 128):
            open(trace, "wb").write(b"collective 7 of rank 0 never came")
        time.sleep(0.05)
stuck_here()
"""
PROGRESS = {"stepRegex": r"step=(\d+)", "startupMinutes": 5, "silenceMinutes": 0.02}
KEY = "/checkpoints/runs/default/tiny/dumps/a001/algo-1/0"


def py_spy(folder: Path) -> str:
    """A py-spy on PATH that says which process it was asked about."""
    folder.mkdir()
    (folder / "py-spy").write_text('#!/bin/sh\necho "Thread of process $3 in stuck_here"\n')
    (folder / "py-spy").chmod(0o755)
    return str(folder)


def test_a_hang_leaves_flight_recorder_and_stacks_beside_the_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", py_spy(tmp_path / "bin"), prepend=":")
    s3 = FakeS3()
    try:
        job = job_json(progress=PROGRESS, heartbeatUri="s3://checkpoints/runs/default/tiny/heartbeat.json")
        world = FakeWorld(tmp_path / "world", 1, job, {"train.py": STUCK})
        world.start(s3.environ)
        assert world.wait() == [70], world.log("algo-1")
        assert s3.objects[KEY + "/nccl-trace-0"] == b"collective 7 of rank 0 never came"
        stacks = [body for key, body in s3.objects.items() if key.startswith(KEY + "/py-spy-")]
        assert len(stacks) == 1 and b"in stuck_here" in stacks[0]
    finally:
        s3.close()
    log = world.log("algo-1")
    assert "1 rank(s) wrote NCCL's flight recorder" in log
    assert "dumps: 2 file(s) in s3:/" + KEY in log
    assert re.search(r'train.py", line \d+ in stuck_here', log), "faulthandler's stacks are in the log as well"


def test_without_s3_the_dumps_go_to_the_jobs_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps/nccl-trace-0").write_text("trace")
    (tmp_path / "dumps/nccl-trace-1").touch()
    said: list[str] = []
    monkeypatch.setattr("slipway_driver.dumps.log", said.append)
    keep_dumps(tmp_path / "dumps", None, tmp_path / "output/dumps/algo-1/0")
    assert (tmp_path / "output/dumps/algo-1/0/nccl-trace-0").read_text() == "trace"
    assert [path.name for path in (tmp_path / "dumps").iterdir()] == ["nccl-trace-1"], "an empty file says nothing and stays"
    assert said == [f"dumps: 1 file(s) in {tmp_path}/output/dumps/algo-1/0"]


def test_what_cannot_be_uploaded_is_kept_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s3, said = FakeS3(), []
    monkeypatch.setattr("slipway_driver.dumps.log", said.append)
    s3.fault = lambda method, path, query: 403
    for name, value in s3.environ.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps/nccl-trace-3").write_text("trace")
    try:
        keep_dumps(tmp_path / "dumps", "s3://checkpoints/dumps", tmp_path / "kept")
    finally:
        s3.close()
    assert (tmp_path / "kept/nccl-trace-3").read_text() == "trace"
    assert "could not be uploaded to s3://checkpoints/dumps" in said[0] and "1 file(s) in" in said[1]


def test_a_rank_that_is_gone_or_has_no_pipe_is_not_waited_for(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "nccl-pipe-0.pipe")
    assert ask_for_traces(tmp_path, seconds=600) == 0


def test_places_and_variables() -> None:
    assert place_of("s3://b/runs/t/r/heartbeat.json", 12, "algo-3") == "s3://b/runs/t/r/dumps/a012/algo-3"
    assert place_of(None, 1, "algo-1") is None
    variables = trace_variables(Path("/x"))
    assert variables["TORCH_FR_DUMP_TEMP_FILE"] == variables["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] == "/x/nccl-trace-"
    # PyTorch waits four times as long before a rank ends: no dump takes that long, and every GPU of the job waits with it.
    assert 4 * int(variables["TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"]) <= 20_000
    assert variables["TORCH_FR_BUFFER_SIZE"] == variables["TORCH_NCCL_TRACE_BUFFER_SIZE"] == "20000"
