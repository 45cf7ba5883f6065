"""Evidence of a hang, collected before the ranks are killed: the stack of every thread of each local rank in the log, NCCL flight recorder
traces and py-spy stacks as files, which are uploaded next to the run's checkpoints.

Variables of PyTorch: https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html (2026-11-20). The pipe and the names that
begin with TORCH_FR are defined in ProcessGroupNCCL.hpp and FlightRecorder.hpp of PyTorch 2.15. A trace is written when a collective times
out, or when something is written to a rank's pipe.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from slipway_driver.log import log
from slipway_driver.rank_session import is_running, receivers, send
from slipway_s3 import S3Client, parse_uri

TRACES = "nccl-trace-"
PIPES = "nccl-pipe-"
ENTRIES = "20000"
#: Time for the ranks to write their traces on request; a rank that hangs in CUDA may never write one.
TRACE_SECONDS = 10.0
#: After a timeout or the loss of a peer, a rank waits four times this long before it exits, even if its trace is already written: 60 s by
#: default (measured with PyTorch 2.11 on an H200), during which every GPU of the job is idle.
WAIT_MILLISECONDS = "4000"
MAX_FILES = 256
LARGEST_BYTES = 64 << 20
#: Time for the ranks to print their stacks; one that hangs in the kernel never does.
DUMP_SECONDS, POLL_SECONDS, DRAIN_SECONDS = 5.0, 0.1, 1.0
PY_SPY_SECONDS = 20.0


def trace_variables(folder: Path) -> Dict[str, str]:
    """Enables the flight recorder with files and pipes in `folder`. Sets both the old and the new variable name where there are two."""
    traces, pipes = str(folder / TRACES), str(folder / PIPES)
    return {
        "TORCH_NCCL_TRACE_BUFFER_SIZE": ENTRIES,
        "TORCH_FR_BUFFER_SIZE": ENTRIES,
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": WAIT_MILLISECONDS,
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": traces,
        "TORCH_FR_DUMP_TEMP_FILE": traces,
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": pipes,
    }


def ask_for_traces(folder: Path, seconds: float = TRACE_SECONDS) -> int:
    """Requests a trace from every rank that reads its pipe and waits for the files. Returns the number of traces written."""
    poked = [pipe for pipe in sorted(folder.glob(PIPES + "*.pipe")) if _poke(pipe)]
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob(TRACES + "*")}
    deadline = time.monotonic() + seconds

    def come() -> List[Path]:
        return [path for path in folder.glob(TRACES + "*") if path.stat().st_mtime_ns != before.get(path.name) and path.stat().st_size > 0]

    while len(come()) < len(poked) and time.monotonic() < deadline:
        time.sleep(0.1)
    if poked:
        time.sleep(0.2)  # The last file may still be incomplete.
    return len(come())


def _poke(pipe: Path) -> bool:
    """Writes to a rank's pipe; False if no process reads from it."""
    with contextlib.suppress(OSError):
        opened = os.open(str(pipe), os.O_WRONLY | os.O_NONBLOCK)
        try:
            return os.write(opened, b"1") == 1
        finally:
            os.close(opened)
    return False


def place_of(heartbeat_uri: Optional[str], attempt: int, host: str) -> Optional[str]:
    """`s3://.../runs/<team>/<run>/dumps/a001/<host>`, next to the heartbeat; None under network isolation."""
    if not heartbeat_uri:
        return None
    return "%s/dumps/a%03d/%s" % (heartbeat_uri.rsplit("/", 1)[0], attempt, host)


def keep_dumps(folder: Path, uri: Optional[str], fallback: Path) -> None:
    """Uploads the files and removes them from `folder`, or moves them to `fallback` if S3 cannot be reached. Errors are only logged."""
    files = [path for path in sorted(folder.glob("*")) if path.is_file() and path.stat().st_size > 0][:MAX_FILES]
    if not files:
        return
    left = _upload(files, uri) if uri else files
    if left:
        try:
            fallback.mkdir(parents=True, exist_ok=True)
            for path in left:
                shutil.move(str(path), str(fallback / path.name))
            log("dumps: %d file(s) in %s" % (len(left), fallback))
        except OSError as error:
            log("dumps: could not be saved: %s" % error)


def _upload(files: List[Path], uri: str) -> List[Path]:
    """Uploads the files; returns those that were not uploaded."""
    bucket, prefix = parse_uri(uri)
    client, sent = S3Client(), 0
    for path in files:
        try:
            if path.stat().st_size <= LARGEST_BYTES:
                client.put(bucket, "%s/%s" % (prefix, path.name), path.read_bytes())
                path.unlink()
                sent += 1
        except Exception as error:  # Credentials, network or permissions: the files are then moved to the job's output.
            log("dumps: could not be uploaded to %s: %s" % (uri, error))
            break
    if sent:
        log("dumps: %d file(s) in %s" % (sent, uri))
    return [path for path in files if path.exists()]


def dump_ranks(sessions: Sequence[int], dumps: Path) -> None:
    """Writes NCCL's flight recorder traces to folder `dumps`, and the stacks of every local rank to the log: with py-spy if the image has
    it (its output is also written to `dumps`), then with faulthandler through SIGABRT. `sessions`: those of the local ranks, whose
    programs may run behind a shell.

    SIGABRT makes a rank with PYTHONFAULTHANDLER=1 print its stacks and exit. SIGCONT follows because a stopped process would not handle the
    signal.
    """
    pids = [pid for session in sessions for pid in receivers(session) or [session]]
    traces = ask_for_traces(dumps)
    if traces:
        log("%d rank(s) wrote NCCL's flight recorder" % traces)
    py_spy = shutil.which("py-spy")
    if py_spy and pids:
        from concurrent.futures import ThreadPoolExecutor  # It takes longer to import than the driver.

        # All GPUs of the job wait for this.
        with ThreadPoolExecutor(len(pids)) as pool:
            list(pool.map(lambda pid: _py_spy(py_spy, pid, dumps), pids))
    for pid in pids:
        send(pid, signal.SIGABRT)
        send(pid, signal.SIGCONT)
    deadline = time.monotonic() + DUMP_SECONDS
    while time.monotonic() < deadline and any(is_running(pid) for pid in pids):
        time.sleep(POLL_SECONDS)
    # What they have printed still passes through pipes, whose readers end with them.
    time.sleep(DRAIN_SECONDS)


def _py_spy(program: str, pid: int, dumps: Path) -> None:
    try:
        command = [program, "dump", "--pid", str(pid)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PY_SPY_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        log("py-spy could not read process %d: %s" % (pid, error))
        return
    with contextlib.suppress(OSError):
        (dumps / ("py-spy-%d.txt" % pid)).write_bytes(done.stdout)
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        log("py-spy %d: %s" % (pid, line))
