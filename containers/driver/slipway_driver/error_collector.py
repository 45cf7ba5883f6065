"""Finds the error that ended a rank in its output: not an error from which it recovered, and not an error that its exit caused."""

from __future__ import annotations

from collections import deque
from typing import Deque, Dict, List, Optional, Tuple

from slipway_driver import error_lines as patterns
from slipway_driver.output_lines import without_labels

TAIL_LINES = 40
#: Limit for one line, so that a printed tensor does not use up the memory.
LONGEST_LINE = 2000
#: Number of lines of other threads allowed between a traceback and its last line.
FOREIGN_LINES = 3
#: Number of lines that a program may print after the traceback that ended it.
LAST_LINES = 3
#: Number of continuation lines of an NCCL error message.
MESSAGE_LINES = 6
#: A line with a word like "error" and without a traceback explains only an exit that follows soon. If the rank ran on for longer, it has
#: recovered.
STALE_SECONDS = 600.0


def is_noise(summary: str) -> bool:
    """Whether a line reports only the exit of another process or of the launcher."""
    return bool(patterns.AFTERMATH.search(summary) or patterns.PEER_LOST.search(summary) or patterns.CONNECTION_LOST.search(summary))


class _Found:
    """One error: the time when it began, its lines, and the line that names it ("" while its traceback is being read)."""

    def __init__(self, at: float, line: str, summary: str = "", noise: bool = False) -> None:
        self.at, self.summary, self.noise = at, summary, noise
        self.lines: Deque[str] = deque([line], maxlen=4 * TAIL_LINES)
        self.foreign, self.more = 0, MESSAGE_LINES
        #: Whether the next line says what went wrong: NCCL's exception names only the failed call.
        self.is_titled = False

    def name(self, summary: str) -> None:
        """Sets the last line of a traceback. Of chained exceptions the last one counts, but noise and causes do not replace each other."""
        if not self.summary or not (is_noise(self.summary) or is_noise(summary)):
            self.summary = summary.rstrip()

    def takes_more(self, text: str) -> bool:
        """Adds a continuation line of an NCCL error; True if `text` was added."""
        if self.more == 0 or not patterns.TALKS_TO_RANKS.search(self.summary) or patterns.RANK_LOG.match(text):
            return False
        self.more -= 1
        self.lines.append(text)
        self.noise = self.noise or is_noise(text)
        if self.is_titled and text.strip():
            self.summary, self.is_titled = "%s (%s)" % (text.strip(), self.summary), False
        return True

    @property
    def is_cause(self) -> bool:
        return bool(self.summary) and not self.noise and not is_noise(self.summary)


class ErrorCollector:
    """Reads one rank's output. With `bare` False only tracebacks count, for output in which the word "error" proves nothing."""

    def __init__(self, bare: bool = True) -> None:
        self._takes_bare = bare
        self._tail: Deque[str] = deque(maxlen=TAIL_LINES)
        #: Open tracebacks by the labels of their lines: the processes of one script share its stderr.
        self._open: Dict[str, _Found] = {}
        self._traceback: Optional[_Found] = None
        self._bare: Optional[_Found] = None
        self._before = ""
        self._after = 0
        #: Whether the output says that SIGKILL ended a program behind this rank.
        self.killed = False

    def feed(self, line: str, at: float) -> None:
        """Reads one line of output, received at `at` (monotonic seconds)."""
        line = line[:LONGEST_LINE]
        label, text = without_labels(line)
        text = patterns.GROUP_MARGIN.sub("", text)
        if patterns.AROUND.match(text):
            if self._traceback is not None:
                self._traceback.is_titled = text.startswith("Last error")
            return
        self._tail.append(line)
        self.killed = self.killed or (any(part in text for part in patterns.KILLED_TEXTS) and bool(patterns.KILLED_PROGRAM.search(text)))
        self._after += bool(text.strip())
        if text.rstrip().endswith(patterns.TRACEBACK):
            self._begin(label, text, at)
        elif label in self._open:
            self._continue(label, text)
        elif self._traceback is not None and self._traceback.takes_more(text):
            pass
        elif self._takes_bare and (patterns.BARE_ERROR.search(text) or patterns.BARE_EXCEPTION.match(text)):
            # Keeps the first such line, unless it is stale or was noise.
            found = _Found(at, text, text.strip())
            if self._bare is None or at - self._bare.at > STALE_SECONDS or (found.is_cause and not self._bare.is_cause):
                self._bare = found
        if text.strip():
            for found in (self._traceback, self._bare):
                # The words of an error that ends with a colon are on the next line.
                if found is not None and found.summary.endswith(":") and self._before.strip() == found.summary:
                    found.summary += " " + text.strip()
            self._before = text

    def _begin(self, label: str, text: str, at: float) -> None:
        """A chained traceback continues the previous error; any other traceback starts a new one."""
        last = self._traceback
        if last is not None and (patterns.CHAINED.match(self._before) or patterns.CHAINED.match(text)):
            self._open[label] = last
            last.lines.extend([self._before, text])
        else:
            self._open[label] = _Found(at, text, noise=bool(patterns.AFTERMATH.search(self._before)))

    def _continue(self, label: str, text: str) -> None:
        found = self._open[label]
        if not text.strip():
            return
        if text[0].isspace():
            found.lines.append(text)
        elif patterns.EXCEPTION.match(text):
            found.lines.append(text)
            found.name(text)
            self._close(label)
        else:
            found.foreign += 1
            if found.foreign > FOREIGN_LINES:
                del self._open[label]

    def _close(self, label: str) -> None:
        """Keeps the latest error that may be the cause: errors that the rank caught occur earlier."""
        found = self._open.pop(label)
        if self._traceback is None or found.is_cause or not self._traceback.is_cause:
            self._traceback = found
        self._after = 0

    @property
    def _best(self) -> Optional[_Found]:
        for found in (self._traceback, self._bare):
            if found is not None and found.is_cause:
                return found
        return self._traceback or self._bare

    @property
    def summary(self) -> str:
        """The line that names the error; "" if there is none."""
        return self._best.summary if self._best else ""

    @property
    def unhandled(self) -> str:
        """The last line of a traceback with which the output ends; "" if the program has printed more after it."""
        last = self._traceback
        return last.summary if last is not None and last.is_cause and self._after <= LAST_LINES else ""

    @property
    def raised(self) -> Tuple[str, float]:
        """The last line of the newest traceback that may be a cause, and when it began; "" if there is none."""
        last = self._traceback
        return (last.summary, last.at) if last is not None and last.is_cause else ("", 0.0)

    @property
    def at(self) -> Optional[float]:
        """When the reported error was read (monotonic seconds); None if there is none."""
        return self._best.at if self._best else None

    @property
    def tail(self) -> List[str]:
        """The traceback of the error if it has one, otherwise the last lines of output."""
        best = self._best
        if best is None or best is not self._traceback:
            return list(self._tail)
        lines = list(best.lines)
        # NCCL may have printed before the traceback what its exception does not say.
        before = [line for line in self._tail if line not in lines] if patterns.TALKS_TO_RANKS.search(best.summary) else []
        named = [line for line in before if patterns.NCCL_CAUSE.search(line)][-2:]
        return named + lines[len(named) - TAIL_LINES :]
