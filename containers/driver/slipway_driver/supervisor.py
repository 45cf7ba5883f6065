"""Runs the launch command as a process group, reads its output, forwards SIGTERM, and returns its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from slipway_driver.rank import STOPPING, die_with_parent

# The service sends SIGKILL 120 s after SIGTERM; the remaining 20 s are for the driver's own shutdown.
GRACE_SECONDS = 100.0
POLL_SECONDS = 0.1
# How long a launcher may run after its last rank has ended (torchrun waits for the peers of its store).
LAUNCHER_SECONDS = 20.0
DRAIN_SECONDS = 3.0


def read_records(state: Path) -> List[Dict[str, Any]]:
    """The records of the local ranks that have ended."""
    records = []
    for path in sorted(state.glob("rank-*.json")):
        try:
            records.append(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    return records


def rank_pids(state: Path) -> List[int]:
    """Process ids of the local ranks' scripts that have not ended."""
    alive = []
    for path in sorted(state.glob("rank-*.pid")):
        if path.with_suffix(".json").exists():
            continue
        try:
            alive.append(int(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    return alive


def send(pid: int, number: int) -> None:
    """Sends a signal to a process; ignored if it has already ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def send_group(pid: int, number: int) -> None:
    """Sends a signal to a process group; ignored if it has already ended."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


class Supervisor:
    """One launch command on one host. `expected_ranks`: the number of local ranks that write a record."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        folder: Path,
        state: Path,
        expected_ranks: int,
        on_line: Callable[[str], None],
    ) -> None:
        self._state = state
        self._expected = expected_ranks
        self._on_line = on_line
        self._stopping = threading.Event()
        self._stop_at: Optional[float] = None
        self._process = subprocess.Popen(
            list(command),
            env=dict(environ),
            cwd=str(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def state(self) -> Path:
        """Folder in which the ranks write their process ids and records."""
        return self._state

    @property
    def stopping(self) -> bool:
        """Whether the processes were told to stop."""
        return self._stopping.is_set()

    @property
    def ended(self) -> bool:
        """Whether the launcher process has ended."""
        return self._process.poll() is not None

    def _read(self) -> None:
        assert self._process.stdout is not None
        for raw in iter(self._process.stdout.readline, b""):
            self._on_line(raw.decode("utf-8", "replace").rstrip("\n"))

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Sends SIGTERM to every local rank, and SIGKILL after `grace_seconds` to all processes that are left. Returns immediately."""
        if self._stopping.is_set():
            return
        try:
            (self._state / STOPPING).touch()
        except FileNotFoundError:
            # SIGTERM arrived after the launcher had ended and its state folder was removed.
            return
        self._stop_at = time.monotonic() + grace_seconds
        self._stopping.set()
        for pid in rank_pids(self._state):
            send(pid, signal.SIGTERM)
        if not list(self._state.glob("rank-*.pid")):
            # No rank has started, so there is nothing to save.
            send_group(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL to the process group of every rank and of the launcher."""
        for pid in rank_pids(self._state):
            send_group(pid, signal.SIGKILL)
        send_group(self._process.pid, signal.SIGKILL)

    def wait(self, each_poll: Callable[[], None]) -> int:
        """Waits for the launcher and returns its exit code. `each_poll` is called about ten times a second."""
        done_at: Optional[float] = None
        while self._process.poll() is None:
            each_poll()
            now = time.monotonic()
            if self._stop_at is not None and now > self._stop_at:
                self.kill()
            if len(read_records(self._state)) >= self._expected:
                done_at = done_at or now
                if now > done_at + LAUNCHER_SECONDS:
                    self.kill()
            time.sleep(POLL_SECONDS)
        code = self._process.wait()
        for pid in rank_pids(self._state):
            send_group(pid, signal.SIGKILL)
        self._reader.join(timeout=DRAIN_SECONDS)
        return code
