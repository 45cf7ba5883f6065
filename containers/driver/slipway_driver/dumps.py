"""What a hang leaves behind: NCCL's flight recorder and py-spy's stacks as files, uploaded beside the run's checkpoints.

Names of PyTorch (https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html, 2026-11-20; the pipe, and the names that
begin with TORCH_FR, are in ProcessGroupNCCL.hpp and FlightRecorder.hpp of PyTorch 2.15). A dump is written when a collective times out,
or when something is written to a rank's pipe.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional

from slipway_s3 import S3Client, parse_uri

TRACES = "nccl-trace-"
PIPES = "nccl-pipe-"
ENTRIES = "20000"
#: How long ranks may take to write their traces after they were asked; one that hangs in CUDA may never do.
TRACE_SECONDS = 10.0
#: After a time-out, or when a peer is gone, a rank waits four times as long before it ends, whether its trace is written or not: 60 s
#: unless this is set (seen with PyTorch 2.11 on an H200), in which every GPU of the job waits.
WAIT_MILLISECONDS = "4000"
MOST_FILES = 256
LARGEST_BYTES = 64 << 20


def trace_variables(folder: Path) -> Dict[str, str]:
    """Flight recorder on, its files and pipes in `folder`; under the old and the new name where there are two."""
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
    """Has every rank that listens write its trace, and waits for the files. Returns how many have come."""
    asked = [pipe for pipe in sorted(folder.glob(PIPES + "*.pipe")) if _poke(pipe)]
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob(TRACES + "*")}
    deadline = time.monotonic() + seconds

    def come() -> List[Path]:
        return [path for path in folder.glob(TRACES + "*") if path.stat().st_mtime_ns != before.get(path.name) and path.stat().st_size > 0]

    while len(come()) < len(asked) and time.monotonic() < deadline:
        time.sleep(0.1)
    if asked:
        time.sleep(0.2)  # The last file is being written.
    return len(come())


def _poke(pipe: Path) -> bool:
    """False when no rank reads from the pipe any more."""
    try:
        opened = os.open(str(pipe), os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        os.write(opened, b"1")
    except OSError:
        return False
    finally:
        os.close(opened)
    return True


def place_of(heartbeat_uri: Optional[str], attempt: int, host: str) -> Optional[str]:
    """`s3://.../runs/<team>/<run>/dumps/a001/<host>`, beside the heartbeat; None under network isolation."""
    if not heartbeat_uri:
        return None
    return "%s/dumps/a%03d/%s" % (heartbeat_uri.rsplit("/", 1)[0], attempt, host)


def keep_dumps(folder: Path, uri: Optional[str], fallback: Path, log: Callable[[str], None]) -> None:
    """Uploads the files, or moves them to `fallback` where S3 cannot be reached; then they are gone from `folder`.

    Trouble is said and never ends anything.
    """
    files = [path for path in sorted(folder.glob("*")) if path.is_file() and path.stat().st_size > 0][:MOST_FILES]
    if not files:
        return
    left = _upload(files, uri, log) if uri else files
    if left:
        try:
            fallback.mkdir(parents=True, exist_ok=True)
            for path in left:
                shutil.move(str(path), str(fallback / path.name))
            log("dumps: %d file(s) in %s" % (len(left), fallback))
        except OSError as error:
            log("dumps: could not be kept: %s" % error)


def _upload(files: List[Path], uri: str, log: Callable[[str], None]) -> List[Path]:
    """Returns the files that are still here."""
    bucket, prefix = parse_uri(uri)
    client, sent = S3Client(), 0
    for path in files:
        try:
            if path.stat().st_size <= LARGEST_BYTES:
                client.put(bucket, "%s/%s" % (prefix, path.name), path.read_bytes())
                path.unlink()
                sent += 1
        except Exception as error:  # Credentials, network, permissions: the files then stay on the host's own output.
            log("dumps: could not be uploaded to %s: %s" % (uri, error))
            break
    if sent:
        log("dumps: %d file(s) in %s" % (sent, uri))
    return [path for path in files if path.exists()]
