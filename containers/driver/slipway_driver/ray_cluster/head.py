"""The first host of a Ray start: Ray's head node, the entry point, and a channel to every other host. The first host adds host names to the
output of Ray's workers; other hosts print only the lines that the EFA verdict needs.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any, Dict, List, Mapping, Optional, Sequence

from slipway_driver.efa_verdict import is_about_network
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import TRY_AGAIN, class_of, shell_code
from slipway_driver.launchers import rank_command, write_launcher_end
from slipway_driver.log import log
from slipway_driver.output_lines import LINE, PREFIX, passed_on
from slipway_driver.peer_channel import PeerChannel, PeerLost, serve
from slipway_driver.rank import die_with_parent
from slipway_driver.ray_cluster.launch import HOST_MODULE, JOIN_SECONDS, RayNode, RaySettings
from slipway_driver.restart_policy import HARDWARE

POLL_SECONDS = 0.1
#: How long a failed entry point waits for the report of a lost host: Ray may detect the loss before the channel does.
NEWS_SECONDS = 2.0


class Workers:
    """Channels to the other hosts. Each host is told when Ray's head node is running, and when the entry point has ended."""

    def __init__(self, settings: RaySettings) -> None:
        self._expected = set(settings.hosts[1:])
        self._channels: Dict[str, PeerChannel] = {}
        self._lock = threading.Lock()
        self._last: Sequence[Any] = ()
        #: Lost hosts, in the order of detection.
        self.lost: "queue.Queue[Failure]" = queue.Queue()
        if self._expected:
            self._socket = socket.create_server((settings.bind_to, settings.control_port), backlog=len(self._expected))
            serve(self._socket, settings.secret, self._use)

    def _use(self, channel: PeerChannel) -> None:
        """Waits until the host reports the end of its part, or until its connection is lost."""
        if channel.name not in self._expected:
            channel.close()
            return
        try:
            with self._lock:
                self._channels[channel.name] = channel
                if self._last:
                    channel.send(*self._last)
            end = Failure(TRY_AGAIN, "peer-lost", None, str(channel.receive()[1]), [], channel.name)
        except (PeerLost, ValueError) as error:
            end = Failure(TRY_AGAIN, HARDWARE, None, "%s was lost: %s" % (channel.name, error), [], channel.name)
        self.lost.put(end)

    def send(self, kind: str, content: Any = None) -> None:
        """Sends a message to every other host, also to those that connect later."""
        with self._lock:
            self._last = (kind, content)
            for channel in self._channels.values():
                with contextlib.suppress(PeerLost):  # The listening thread detects the loss as well.
                    channel.send(kind, content)


class JoinedHosts:
    """Reads which hosts have joined from another process, because of what Ray does to one that imports it."""

    def __init__(self, hosts: Sequence[str], environ: Mapping[str, str]) -> None:
        words = [sys.executable, "-B", "-u", "-m", HOST_MODULE, "joined", *hosts]
        self._process = subprocess.Popen(words, env=dict(environ), stdout=subprocess.PIPE, preexec_fn=die_with_parent)
        #: Host to address.
        self.addresses: Dict[str, str] = {}
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self.addresses = dict(json.loads(line))
            except ValueError:
                continue  # Other output, for example of a library.

    @property
    def failed(self) -> bool:
        """Whether the process has ended before all hosts had joined."""
        return self._process.poll() not in (None, 0)

    def stop(self) -> None:
        """Kills the process and waits for its end."""
        self._process.kill()
        self._process.wait()


class Head:
    """One start of the ranks with Ray, on the first host."""

    def __init__(self, settings: RaySettings, state: Path, script: Sequence[str], environ: Mapping[str, str]) -> None:
        self._settings, self._state, self._script, self._environ = settings, state, list(script), environ
        self._workers = Workers(settings)
        self._node = RayNode(settings.words(head=True), environ)
        self._entry_point: "Optional[subprocess.Popen[bytes]]" = None

    def run(self) -> int:
        """Returns the exit code of the entry point, or TRY_AGAIN if the cluster fails."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        code = TRY_AGAIN
        try:
            hosts = self._await_hosts()
            code = TRY_AGAIN if hosts is None else self._run_script(hosts)
        finally:
            self._workers.send("end", code)
            self._node.stop()
        return code

    def _on_sigterm(self, _number: int, _frame: Any) -> None:
        """The driver signals the entry point directly. Before it has started there is nothing to save."""
        if self._entry_point is None:
            raise SystemExit(TRY_AGAIN)

    def _await_hosts(self) -> Optional[Dict[str, str]]:
        """Waits until all hosts have joined. Returns host names by address; None on failure, with the reason in the state folder."""
        names, began = self._settings.hosts, time.monotonic()
        joined = JoinedHosts(names, self._environ)
        is_up = False
        try:
            while not set(names) <= set(joined.addresses):
                if joined.addresses and not is_up:
                    is_up, began = True, time.monotonic()
                    self._workers.send("join")
                if self._is_lost() or self._is_late(joined, began, is_up):
                    return None
                time.sleep(POLL_SECONDS)
            log("ray: all %d hosts have joined after %.1f s" % (len(names), time.monotonic() - began))
            return {address: name for name, address in joined.addresses.items()}
        finally:
            joined.stop()

    def _is_late(self, joined: JoinedHosts, began: float, head_is_up: bool) -> bool:
        """Whether hosts have not joined in time: the head node since the beginning, the others since the head is running."""
        limit = self._settings.join_seconds if head_is_up else JOIN_SECONDS
        missing = [name for name in self._settings.hosts if name not in joined.addresses]
        if joined.failed:
            host, reason = self._settings.host, "the list of joined hosts could not be read from Ray; see the log for its error"
        elif missing and time.monotonic() >= began + limit:
            named = ", ".join(missing[:8])
            host, reason = missing[0], "hosts must join Ray within %d s; %s did not" % (limit, named)
        else:
            return False
        write_launcher_end(self._state, Failure(TRY_AGAIN, class_of(TRY_AGAIN), None, reason, [], host))
        return True

    def _is_lost(self) -> bool:
        """Whether another host, or the Ray node of this host, has ended; writes the reason to the state folder."""
        if self._node.code is not None:
            write_launcher_end(self._state, self._node.unexpected_end(self._settings.host))
            return True
        try:
            write_launcher_end(self._state, self._workers.lost.get_nowait())
        except queue.Empty:
            return False
        return True

    def _run_script(self, hosts: Mapping[str, str]) -> int:
        self._entry_point = entry_point = subprocess.Popen(
            rank_command(str(self._state), self._script), env=dict(self._environ), stdout=subprocess.PIPE, preexec_fn=die_with_parent
        )
        output = threading.Thread(target=pump, args=(entry_point.stdout, self._settings.host, hosts), daemon=True)
        output.start()
        while entry_point.poll() is None:
            if self._is_lost():
                entry_point.terminate()  # The wrapper forwards the signal and kills the script 5 s later.
                entry_point.wait()
                return TRY_AGAIN
            time.sleep(POLL_SECONDS)
        output.join(timeout=NEWS_SECONDS)
        code = shell_code(entry_point.wait())
        # The loss of a host also makes the script fail.
        deadline = time.monotonic() + NEWS_SECONDS
        while code != 0 and not self._is_lost() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return code


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
