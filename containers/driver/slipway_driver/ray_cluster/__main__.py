"""One host's part of a Ray start: `python -m slipway_driver.ray_cluster STATE_FOLDER LAYOUT SCRIPT WORDS...`.

The first host runs the head. Every other host is a node that joins once the head is running, and ends on request of the first host.

`python -m slipway_driver.ray_cluster joined HOST...` prints which hosts have joined: one line of JSON, {host: address}, at every change.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from slipway_driver.errors import Failure
from slipway_driver.exit_codes import TRY_AGAIN
from slipway_driver.launchers import write_launcher_end
from slipway_driver.log import log
from slipway_driver.peer_channel import PeerChannel, PeerLost, connect_patiently
from slipway_driver.rank import die_with_parent, write_state
from slipway_driver.ray_cluster.head import Head, NetworkLines
from slipway_driver.ray_cluster.launch import HOST_RESOURCE, RayNode, RaySettings

POLL_SECONDS, JOINED_POLL_SECONDS = 0.1, 0.5
#: How often the workers' output is searched for network lines.
CHECK_SECONDS = 1.0


class Worker:
    """One start of the ranks with Ray, on a host other than the first. The driver treats it as the only rank of the host."""

    def __init__(self, settings: RaySettings, state: Path, environ: Mapping[str, str]) -> None:
        self._settings, self._state, self._environ = settings, state, environ
        self._orders: "queue.Queue[Tuple[str, Any]]" = queue.Queue()
        self._joined = False

    def run(self) -> int:
        """Runs this host's part; 0 if the entry point succeeded."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        write_state(self._state, "rank-0.pid", os.getpid())
        settings = self._settings
        channel = connect_patiently(settings.master, settings.control_port, settings.host, settings.secret, settings.bind_to or None)
        threading.Thread(target=self._listen, args=(channel,), daemon=True).start()
        kind, code = self._orders.get()
        return self._serve(channel) if kind == "join" else self._leave(code)

    def _on_sigterm(self, _number: int, _frame: Any) -> None:
        """The entry point may need this host while it saves, so the node keeps running until the first host ends it."""
        if not self._joined:
            raise SystemExit(TRY_AGAIN)

    def _listen(self, channel: PeerChannel) -> None:
        while True:
            try:
                self._orders.put(channel.receive())
            except (PeerLost, ValueError):
                self._orders.put(("lost", None))
                return

    def _serve(self, channel: PeerChannel) -> int:
        """Runs the Ray node until the first host ends it or it fails."""
        self._joined = True
        node = RayNode(self._settings.words(head=False), self._environ)
        network, checked_at = NetworkLines(node.folder), 0.0
        try:
            while node.code is None:
                if time.monotonic() > checked_at + CHECK_SECONDS:
                    checked_at = time.monotonic()
                    network.print_new()
                try:
                    _, code = self._orders.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    continue
                return self._leave(code)
            return self._broken(node, channel)
        finally:
            network.print_new()
            node.stop()

    def _broken(self, node: RayNode, channel: PeerChannel) -> int:
        """Reports that the Ray processes of this host ended unexpectedly; the first host then ends the job's ranks."""
        end = node.unexpected_end(self._settings.host)
        write_launcher_end(self._state, end)
        with contextlib.suppress(PeerLost):
            channel.send("ended", end.reason)
        return end.code

    def _leave(self, code: Optional[int]) -> int:
        """Records the end with this exit code that the first host has requested. None: the connection to the first host was lost."""
        if code is None:
            reason = "the connection to the first host was lost"
            write_launcher_end(self._state, Failure(TRY_AGAIN, "peer-lost", None, reason, [], self._settings.hosts[0]))
            return TRY_AGAIN
        rank = self._settings.hosts.index(self._settings.host)
        # The first host reports a failed entry point, so this host records only a consequence.
        end = {"code": 0} if code == 0 else {"code": -signal.SIGTERM, "tornDown": True}
        write_state(self._state, "rank-0.json", {"rank": rank, "localRank": 0, "endedAt": time.monotonic(), **end})
        return 0 if code == 0 else TRY_AGAIN


def joined(nodes: Sequence[Dict[str, Any]]) -> Dict[str, str]:
    """Addresses of the live nodes in `ray.nodes()`, by the host name in their custom resource."""
    return {
        resource[len(HOST_RESOURCE) :]: str(node["NodeManagerAddress"])
        for node in nodes
        if node.get("Alive")
        for resource in node.get("Resources", {})
        if resource.startswith(HOST_RESOURCE)
    }


def print_joined(hosts: List[str]) -> int:
    """Prints the joined hosts, until all of `hosts` have joined. Returns the exit code."""
    import ray

    printed: Dict[str, str] = {}
    while not ray.is_initialized():
        with contextlib.suppress(ConnectionError, RuntimeError, ValueError):
            ray.init(log_to_driver=False, logging_level="ERROR")
            break
        time.sleep(JOINED_POLL_SECONDS)
    while not set(hosts) <= set(printed):
        found = joined(ray.nodes())
        if found != printed:
            printed = found
            print(json.dumps(printed), flush=True)
        time.sleep(JOINED_POLL_SECONDS)
    ray.shutdown()
    return 0


def main(arguments: List[str]) -> int:
    """Runs the head on the first host or a worker on another host. Returns the exit code."""
    die_with_parent()
    if arguments[0] == "joined":
        return print_joined(arguments[1:])
    state, settings = Path(arguments[0]), RaySettings(os.environ, json.loads(arguments[1]))
    if settings.host == settings.hosts[0]:
        return Head(settings, state, arguments[2:], os.environ).run()
    try:
        return Worker(settings, state, os.environ).run()
    except PeerLost as error:
        log("ray: no connection to the first host: %s" % error)
        return TRY_AGAIN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
