"""Output of Ray's workers: on the first host with the name of the host that wrote it, elsewhere what the EFA verdict needs."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import IO, Dict, List, Mapping

from slipway_driver.efa_verdict import is_about_network
from slipway_driver.progress import PREFIX

#: How Ray labels a worker's line: `(name pid=12, ip=10.0.0.7) text`, without `ip` for workers of the same host (print_worker_logs of
#: ray/_private/worker.py, ray 2.60.0), perhaps coloured.
_LABEL = re.compile(r"^(?:\x1b\[\d+m)?\((?P<who>[^()]*?pid=\d+)(?:, ip=(?P<ip>[^()\s]+))?\)(?:\x1b\[0m)? (?P<text>.*)$")


def with_host(line: str, own_host: str, hosts: Mapping[str, str]) -> str:
    """A worker's line with its host's name in front; progress lines bare, because readers look for them at the start of a line.

    `hosts`: names by address.
    """
    found = _LABEL.match(line)
    if found is None:
        return line
    if found["text"].startswith(PREFIX):
        return found["text"]
    host = hosts.get(found["ip"], found["ip"]) if found["ip"] else own_host
    return "[%s] (%s) %s" % (host, found["who"], found["text"])


def write_line(line: str) -> None:
    """One write a line: several threads share the pipe to the driver."""
    os.write(1, (line + "\n").encode("utf-8", "replace"))


class Repeats:
    """Leaves out what a worker says again and again: parts of Ray do so for as long as the dashboard is off."""

    def __init__(self) -> None:
        self._last: Dict[str, str] = {}
        self._more: Dict[str, int] = {}

    def shown(self, line: str) -> List[str]:
        """The lines to show for `line`: none for a repetition, and how many there were once the worker says something else."""
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
    """The entry point's output, which Ray has mixed with that of all workers, until its end."""
    repeats = Repeats()
    for raw in iter(source.readline, b""):
        for line in repeats.shown(raw.decode("utf-8", "replace").rstrip("\r\n")):
            write_line(with_host(line, own_host, hosts))


class NetworkLines:
    """What this host's workers say of their network: Ray shows their output on the first host alone, and each host has a verdict."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: Dict[Path, int] = {}

    def look(self) -> None:
        """Prints the lines that have come since the last look."""
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
