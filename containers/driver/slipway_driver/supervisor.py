"""Reads the output of a launched command, forwards SIGTERM to its ranks, and returns its exit code."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from slipway_driver.launchers import Launched
from slipway_driver.log import log
from slipway_driver.output_lines import passed_on
from slipway_driver.rank import RECORD, STOPPING
from slipway_driver.rank_session import kill_session, send_group, stop_session

# The service sends SIGKILL 120 s after SIGTERM; the remaining 20 s are for the driver's own shutdown.
GRACE_SECONDS = 100.0
POLL_SECONDS = 0.1
# How long a launcher may run after its last rank has ended (torchrun waits for the peers of its store).
LAUNCHER_SECONDS = 20.0
DRAIN_SECONDS = 3.0


class Supervisor:
    """One launched command on one host. `expected_ranks`: the number of local ranks that write a record."""

    def __init__(self, process: Launched, state: Path, expected_ranks: int, on_line: Callable[[str, str], None]) -> None:
        """`on_line` receives each line of the output and its kind (output_lines.py)."""
        self._process, self._state, self._expected, self._on_line = process, state, expected_ranks, on_line
        #: Files of the state folder that the ranks could not write.
        self._unwritten: Dict[str, Any] = {}
        self._complained = False
        #: When what is left is killed after SIGTERM; None before SIGTERM.
        self._stop_at: Optional[float] = None
        #: How long the ranks had to end after SIGTERM, if that was not long enough.
        self.killed_after: Optional[float] = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def stopping(self) -> bool:
        """Whether the processes were told to stop."""
        return self._stop_at is not None

    @property
    def ended(self) -> bool:
        """Whether the launcher process has ended."""
        return self._process.poll() is not None

    def records(self) -> List[Dict[str, Any]]:
        """The records of the local ranks that have ended."""
        return list(self._files(".json").values())

    def pids(self) -> List[int]:
        """Process ids of the local ranks' scripts, including ended ones. Each leads a session."""
        return list(self._files(".pid").values())

    def running(self) -> List[int]:
        """Process ids of the local ranks' scripts that have not ended."""
        ended = self._files(".json")
        return [pid for name, pid in self._files(".pid").items() if name not in ended]

    def _files(self, suffix: str) -> Dict[str, Any]:
        """The contents of the ranks' files with a suffix, by name without it."""
        found = {name[: -len(suffix)]: content for name, content in list(self._unwritten.items()) if name.endswith(suffix)}
        for path in sorted(self._state.glob("rank-*" + suffix)):
            try:
                found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
        return found

    def _read(self) -> None:
        """Reads until the end. No error in what is done with a line ends it: the ranks' output would be lost."""
        assert self._process.stdout is not None
        for line, kind in passed_on(self._process.stdout):
            try:
                if line.startswith(RECORD):
                    name, content = json.loads(line[len(RECORD) :])
                    self._unwritten[name] = content
                else:
                    self._on_line(line, kind)
            except Exception as error:
                if not self._complained:
                    self._complained = True
                    log("a line of output could not be processed: %s: %s" % (type(error).__name__, error))

    def stop(self) -> None:
        """Sends SIGTERM to the session of every local rank, and SIGKILL after GRACE_SECONDS to what is left. Does not wait."""
        if self.stopping:
            return
        try:
            (self._state / STOPPING).touch()
        except FileNotFoundError:
            # SIGTERM arrived after the launcher had ended and its state folder was removed.
            return
        except OSError as error:
            log("the launcher may end ranks that still save: %s" % error)
        self._stop_at = time.monotonic() + GRACE_SECONDS
        for pid in self.running():
            stop_session(pid)
        if not self.pids():
            # No rank has started, so there is nothing to save.
            send_group(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL to the session of every rank and of the launcher."""
        for pid in [*self.pids(), self._process.pid]:
            kill_session(pid)

    def wait(self, each_poll: Callable[[], None]) -> int:
        """Waits for the launcher and returns its exit code. `each_poll` is called about ten times a second."""
        done_at: Optional[float] = None
        while self._process.poll() is None:
            each_poll()
            now = time.monotonic()
            if self._stop_at is not None and now > self._stop_at:
                self.killed_after = GRACE_SECONDS
                self.kill()
            if len(self.records()) >= self._expected:
                done_at = done_at or now
                if now > done_at + LAUNCHER_SECONDS:
                    self.kill()
            time.sleep(POLL_SECONDS)
        code = self._process.wait()
        self.kill()  # Programs that a rank has left behind, or all of them if its wrapper was killed.
        self._reader.join(timeout=DRAIN_SECONDS)
        return code
