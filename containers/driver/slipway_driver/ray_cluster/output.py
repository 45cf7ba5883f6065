"""Output of Ray's workers: the first host adds host names to it; other hosts print only the lines that the EFA verdict needs."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import IO, Dict, List, Mapping

from slipway_driver.efa_verdict import is_about_network
from slipway_driver.output_lines import LINE, PREFIX, passed_on

#: Ray's label of a worker's line: `(name pid=12, ip=10.0.0.7) text`, without `ip` for workers on the same host (print_worker_logs of
#: ray/_private/worker.py, ray 2.60.0), possibly with color codes.
_LABEL = re.compile(r"^(?:\x1b\[\d+m)?\((?P<who>[^()]*?pid=\d+)(?:, ip=(?P<ip>[^()\s]+))?\)(?:\x1b\[0m)? (?P<text>.*)$")


def with_host(line: str, own_host: str, hosts: Mapping[str, str]) -> str:
    """Prefixes a worker's line with its host name. The label of a progress line is removed because readers expect progress lines at the
    start of a line.

    `hosts`: host names by address.
    """
    found = _LABEL.match(line)
    if found is None:
        return line
    if found["text"].startswith(PREFIX):
        return found["text"]
    host = hosts.get(found["ip"], found["ip"]) if found["ip"] else own_host
    return "[%s] (%s) %s" % (host, found["who"], found["text"])


def write_line(line: str, kind: str = LINE) -> None:
    """Writes the line with one call, because several threads share the pipe to the driver."""
    os.write(1, (line + kind).encode("utf-8", "replace"))


class Repeats:
    """Suppresses repeated lines of a worker; parts of Ray print such lines while the dashboard is disabled."""

    def __init__(self) -> None:
        self._last: Dict[str, str] = {}
        self._more: Dict[str, int] = {}

    def shown(self, line: str) -> List[str]:
        """The lines to print for `line`: none for a repetition; before the next different line, the number of repetitions."""
        found = _LABEL.match(line)
        if found is None:
            return [line]
        who, text = found["who"], found["text"]
        if self._last.get(who) == text and not text.startswith(PREFIX):
            self._more[who] = self._more.get(who, 0) + 1
            return []
        self._last[who] = text
        more = self._more.pop(who, 0)
        label = line[: found.start("text")]
        return [*([label + "(the line above %d more times)" % more] if more else []), line]


def pump(source: "IO[bytes]", own_host: str, hosts: Mapping[str, str]) -> None:
    """Prints the output of the entry point, into which Ray merges the output of all workers, until it ends."""
    repeats = Repeats()
    for whole, kind in passed_on(source):
        for line in repeats.shown(whole):
            write_line(with_host(line, own_host, hosts), kind)


class NetworkLines:
    """Network lines of this host's workers. Ray prints their output only on the first host, but every host determines an EFA verdict."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: Dict[Path, int] = {}

    def print_new(self) -> None:
        """Prints the new lines since the last call."""
        for path in sorted(self._folder.glob("session_2*/logs/worker-*")):
            for line in self._new_lines(path):
                if is_about_network(line):
                    write_line(line)

    def _new_lines(self, path: Path) -> List[str]:
        begin = self._read.get(path, 0)
        try:
            if path.stat().st_size <= begin:
                return []
            with path.open("rb") as opened:
                opened.seek(begin)
                whole, _, _ = opened.read().rpartition(b"\n")
        except OSError:
            return []
        self._read[path] = begin + len(whole) + 1 if whole else begin
        return whole.decode("utf-8", "replace").splitlines()
