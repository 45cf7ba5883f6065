"""The output of one rank: read as fast as the rank writes it, and passed on to the driver within limits."""

from __future__ import annotations

import collections
import contextlib
import fcntl
import os
import re
import select
import threading
import time
from typing import IO, Deque, Optional

from slipway_driver.efa_verdict import is_about_network
from slipway_driver.error_collector import ErrorCollector
from slipway_driver.output_lines import LINE, PREFIX, SHOWN, STATE, Lines

BURST_LINES = 2000
LINES_PER_SECOND = 50.0
#: Limit for NCCL lines about its network, separate from the limit for other lines so that the verdict does not depend on them.
NETWORK_LINES = 200
#: A longer line counts as several lines.
LINE_BYTES = 4096
#: Limit for what the driver reads without printing it: the states of a bar, and lines above the limit of the log.
BURST_STATES, STATES_PER_SECOND = 50_000, 1000.0
#: A redrawn line, or text without an end, is logged at most once in this time.
SHOW_SECONDS = 1.0
#: What may wait in the pipe of a rank. If more than half of it waited, only the end of it is processed, because the rank would block.
PIPE_BYTES, F_SETPIPE_SZ = 1 << 20, 1031
PROCESSED_BYTES = 1 << 16
_ANY_END = re.compile(rb"[\r\n]")
#: tqdm erases its bar before a program writes a line to the other stream.
_ERASED = re.compile(rb"\r +\r")
#: How much may wait for the driver, and for how long at the end of the rank.
WAITING_BYTES, WAITING_SECONDS = 8 << 20, 10.0


def labelled(line: str, rank: Optional[int]) -> str:
    """Prefixes a line with its rank. Progress lines are unchanged because readers expect them at the start of a line."""
    if rank is None or line.startswith(PREFIX):
        return line
    return "[rank %d] %s" % (rank, line)


class LineBudget:
    """Rate limit for the lines of a rank: a burst, then a constant rate. It bounds the size and the cost of the log."""

    def __init__(self, burst: int = BURST_LINES, per_second: float = LINES_PER_SECOND) -> None:
        self._burst, self._per_second = float(burst), per_second
        self._left, self._at = float(burst), 0.0

    def admit(self, line: str, now: float) -> bool:
        """Whether a line may be passed on at `now` (monotonic seconds)."""
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        cost = 1 + len(line) // LINE_BYTES
        if self._left < cost:
            return False
        self._left -= cost
        return True


class Writer:
    """Writes to the driver from a thread of its own, because a rank must not wait for a slow log. Drops the oldest lines for it."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._waiting: Deque[bytes] = collections.deque()
        self._bytes = self._dropped = 0
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, text: str) -> None:
        """Passes on `text`, which ends with LINE, STATE or SHOWN. Never blocks."""
        data = text.encode("utf-8", "replace")
        with self._changed:
            self._waiting.append(data)
            self._bytes += len(data)
            while self._bytes > WAITING_BYTES:
                self._bytes -= len(self._waiting.popleft())
                self._dropped += 1
            self._changed.notify()

    def close(self) -> None:
        """Waits until everything is written, or until the driver has not read it in time."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(WAITING_SECONDS)

    def _next(self) -> bytes:
        with self._changed:
            while not self._waiting and not self._ended:
                self._changed.wait()
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                return b"(%d lines dropped: the log could not be written fast enough)\n" % dropped
            data = self._waiting.popleft() if self._waiting else b""
            self._bytes -= len(data)
            return data

    def _run(self) -> None:
        for data in iter(self._next, b""):
            # One write per line, because several ranks share the pipe and their lines must not be interleaved. If the driver has ended,
            # reading continues, because the rank would block otherwise.
            with contextlib.suppress(OSError):
                while data:
                    data = data[os.write(self._descriptor, data) :]


class RankOutput(threading.Thread):
    """Reads stdout or stderr of a rank until its end.

    :param before: reads the other stream. What it still has to read was written before what this one has just read, and is passed on first:
        a trainer writes a loss to stdout, and then the bar that shows its step to stderr.
    """

    def __init__(
        self, source: "IO[bytes]", rank: Optional[int], errors: ErrorCollector, writer: Writer, before: "Optional[RankOutput]" = None
    ) -> None:
        super().__init__(daemon=True)
        self._source, self._rank, self._errors, self._writer, self._before = source, rank, errors, writer, before
        self._turn = threading.Lock()
        self._lines = Lines()
        with contextlib.suppress(OSError):
            fcntl.fcntl(source.fileno(), F_SETPIPE_SZ, PIPE_BYTES)
        self._log, self._events, self._network = LineBudget(), LineBudget(), LineBudget(NETWORK_LINES, 0.0)
        self._reads = LineBudget(BURST_STATES, STATES_PER_SECOND)
        self._dropped = 0
        #: The last state of the line that is being redrawn, whether the driver has read it, and what the log shows of it.
        self._state, self._is_read, self._shown = "", True, ""
        #: When text that is not a complete line is logged; None without such text.
        self._show_at: Optional[float] = None
        self._over = threading.Event()

    def finish(self) -> None:
        """Waits for the end of the stream; not for long, because a grandchild may keep it open indefinitely."""
        self.join(timeout=2.0)
        self._over.set()
        self.join(timeout=2 * SHOW_SECONDS)

    def run(self) -> None:
        """Reads. No error in what is done with a line ends it: the rank would block once the pipe is full."""
        while not self._over.is_set():
            self._has_data(SHOW_SECONDS)
            if self.read_waiting() == b"":
                break
        with self._turn:
            if self._lines.rest:
                self._take(self._lines.rest, LINE)
            else:
                self._close_line()
            self._report_dropped()

    def read_waiting(self) -> Optional[bytes]:
        """Reads and passes on what the rank has written; returns None if that is nothing, and nothing but empty bytes at the end."""
        with self._turn:
            data = self._read() if self._has_data(0.0) else None
            rest = data or b""
            if rest and self._before is not None:
                if rest[:1] == b"\r" and rest[1:2] != b"\n":
                    # It only ends a state that was read before, so nothing on the other stream precedes that.
                    rest = rest[1:]
                    with contextlib.suppress(Exception):
                        self._take_all(b"\r")
                older = self._older(rest)
                if older:
                    with contextlib.suppress(Exception):
                        self._take_all(rest[:older])
                    rest = rest[older:]
                self._before.read_waiting()
            if data != b"":
                with contextlib.suppress(Exception):
                    self._take_all(self._last_part(rest))
            return data

    def _older(self, data: bytes) -> int:
        """How much of `data` was written before what waits on the other stream: what comes before a bar was erased for that."""
        if self._state.isspace() or len(data) > PIPE_BYTES // 2:
            return 0
        erased = _ERASED.search(data)
        return erased.end() if erased else 0

    def _has_data(self, seconds: float) -> bool:
        return bool(select.select([self._source.fileno()], [], [], seconds)[0])

    def _read(self) -> bytes:
        try:
            return os.read(self._source.fileno(), PIPE_BYTES)
        except OSError:
            return b""

    def _last_part(self, data: bytes) -> bytes:
        """What is processed of `data`: all of it, unless the rank writes faster than its lines are processed. The end has the last step."""
        if len(data) <= PIPE_BYTES // 2:
            return data
        self._lines, end = Lines(), _ANY_END.search(data, len(data) - PROCESSED_BYTES)
        begin = end.end() if end else len(data)
        self._dropped += data.count(b"\n", 0, begin) or 1
        return data[begin:]

    def _take_all(self, data: bytes) -> None:
        for text, kind in self._lines.feed(data):
            self._take(text, kind)
        pending, now = self._lines.rest or self._state, time.monotonic()
        if not pending or pending == self._shown or pending.startswith(PREFIX):
            self._show_at = None
        elif self._show_at is None:
            self._show_at = now + SHOW_SECONDS
        elif now >= self._show_at:
            # The driver reads it only when it is complete.
            self._pass_on(pending, SHOWN)
            self._shown, self._show_at = pending, None

    def _take(self, text: str, kind: str) -> None:
        if kind == STATE:
            self._state, self._is_read = text, self._pass_on(text, STATE)
        elif text or not self._state:
            self._errors.feed(text, time.monotonic())
            self._pass_on(text, STATE if text and text == self._shown else LINE)
            self._state, self._is_read, self._shown = "", True, ""
        else:
            self._close_line()

    def _close_line(self) -> None:
        """Logs the last state of a redrawn line."""
        if self._state and self._state != self._shown:
            self._errors.feed(self._state, time.monotonic())
            self._pass_on(self._state, SHOWN if self._is_read else LINE, is_last=True)
        elif not self._is_read:
            self._pass_on(self._state, STATE, is_last=True)
        self._state, self._is_read, self._shown = "", True, ""

    def _pass_on(self, text: str, kind: str, is_last: bool = False) -> bool:
        """Passes on a line within the limits. `is_last`: no other state replaces it. Returns whether the driver reads it."""
        now = time.monotonic()
        logs = kind != STATE and self._admits(text, now)
        reads = kind != SHOWN and (logs or is_last or self._reads.admit(text, now))
        self._dropped += kind != STATE and not logs
        if logs:
            self._report_dropped()
        if logs or reads:
            self._writer.put(labelled(text, self._rank) + (SHOWN if not reads else LINE if logs else STATE))
        return reads

    def _admits(self, text: str, now: float) -> bool:
        if text.startswith(PREFIX):
            return self._events.admit(text, now)
        return (is_about_network(text) and self._network.admit(text, now)) or self._log.admit(text, now)

    def _report_dropped(self) -> None:
        if self._dropped:
            line = "(%d lines dropped: more than %d per second)" % (self._dropped, LINES_PER_SECOND)
            self._writer.put(labelled(line, self._rank) + SHOWN)
            self._dropped = 0
