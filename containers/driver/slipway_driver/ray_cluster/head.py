"""The first host of a Ray start: Ray's head node, the entry point, and a channel to every other host."""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence

from slipway_driver.errors import Failure
from slipway_driver.exit_codes import TRY_AGAIN, class_of, shell_code
from slipway_driver.launchers import rank_command, write_launcher_end
from slipway_driver.log import log
from slipway_driver.peer_channel import PeerChannel, PeerLost, serve
from slipway_driver.rank import die_with_parent
from slipway_driver.ray_cluster.node import JOIN_SECONDS, RayNode, RaySettings
from slipway_driver.ray_cluster.output import pump
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
        self._last: Optional[Dict[str, Any]] = None
        #: Lost hosts, in the order of detection.
        self.lost: "queue.Queue[Failure]" = queue.Queue()
        if self._expected:
            self._socket = socket.create_server((settings.bind_to, settings.control_port), backlog=len(self._expected))
            serve(self._socket, settings.secret, self._use, log)

    def _use(self, channel: PeerChannel) -> None:
        """Waits until the host reports the end of its part, or until its connection is lost."""
        if channel.name not in self._expected:
            channel.close()
            return
        try:
            with self._lock:
                self._channels[channel.name] = channel
                if self._last:
                    channel.send(self._last)
            end = Failure(TRY_AGAIN, "peer-lost", None, str(channel.receive()["ended"]), [], channel.name)
        except (PeerLost, ValueError, KeyError) as error:
            end = Failure(TRY_AGAIN, HARDWARE, None, "%s was lost: %s" % (channel.name, error), [], channel.name)
        self.lost.put(end)

    def send(self, **message: Any) -> None:
        """Sends a message to every other host, also to those that connect later."""
        with self._lock:
            self._last = message
            for channel in self._channels.values():
                with contextlib.suppress(PeerLost):  # The listening thread detects the loss as well.
                    channel.send(message)


class JoinedHosts:
    """Reads the output of slipway_driver.ray_cluster.nodes."""

    def __init__(self, hosts: Sequence[str], environ: Mapping[str, str]) -> None:
        words = [sys.executable, "-B", "-u", "-m", "slipway_driver.ray_cluster.nodes", *hosts]
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
            self._workers.send(end=code)
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
                    self._workers.send(join=True)
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
