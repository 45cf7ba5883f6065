"""Every other host of a Ray launch: a node that joins once the head is up, and ends when the first host says so."""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from slipway_driver.exit_codes import TRY_AGAIN
from slipway_driver.launcher_end import LauncherEnd, write_launcher_end
from slipway_driver.peer_channel import PeerChannel, PeerLost, connect_patiently
from slipway_driver.rank import write_pid, write_record
from slipway_driver.ray_cluster.node import RayNode
from slipway_driver.ray_cluster.output import NetworkLines
from slipway_driver.ray_cluster.settings import RaySettings

POLL_SECONDS = 0.1
#: How often the workers' output is searched for lines about the network.
LOOK_SECONDS = 1.0


class Worker:
    """One launch, seen from a host that is not the first. To the driver it is the one rank of its host."""

    def __init__(self, settings: RaySettings, state: Path, environ: Mapping[str, str]) -> None:
        self._settings, self._state, self._environ = settings, state, environ
        self._orders: "queue.Queue[Optional[Dict[str, Any]]]" = queue.Queue()
        self._joined = False

    def run(self) -> int:
        """0 when the launch ended well."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        write_pid(self._state, 0, os.getpid())
        settings = self._settings
        channel = connect_patiently(settings.master, settings.control_port, settings.host, settings.secret, settings.bind_to or None)
        threading.Thread(target=self._listen, args=(channel,), daemon=True).start()
        order = self._orders.get()
        return self._leave(order) if order is None or "end" in order else self._serve(channel)

    def _on_sigterm(self, _number: int, _frame: Any) -> None:
        """The entry point may still need this host while it saves: the first host says when it has ended."""
        if not self._joined:
            raise SystemExit(TRY_AGAIN)

    def _listen(self, channel: PeerChannel) -> None:
        while True:
            try:
                self._orders.put(channel.receive())
            except (PeerLost, ValueError):
                self._orders.put(None)
                return

    def _serve(self, channel: PeerChannel) -> int:
        """From joining to the end of the launch, or of this host's own part in it."""
        self._joined = True
        node = RayNode(self._settings.words(head=False), self._environ)
        network, looked_at = NetworkLines(node.folder), 0.0
        try:
            while node.code is None:
                if time.monotonic() > looked_at + LOOK_SECONDS:
                    looked_at = time.monotonic()
                    network.look()
                try:
                    order = self._orders.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    continue
                return self._leave(order)
            return self._broken(node, channel)
        finally:
            network.look()
            node.stop()

    def _broken(self, node: RayNode, channel: PeerChannel) -> int:
        """Ray's processes on this host ended by themselves: this host reports it, and the first one ends the launch."""
        end = node.unexpected_end(self._settings.host)
        write_launcher_end(self._state, end)
        try:
            channel.send({"ended": end.reason})
        except PeerLost:
            pass
        return end.code

    def _leave(self, order: Optional[Mapping[str, Any]]) -> int:
        """The launch has ended elsewhere. `order` None: the first host is gone."""
        if order is None:
            reason = "the first host's part of the launch is gone"
            write_launcher_end(self._state, LauncherEnd(TRY_AGAIN, "peer-lost", self._settings.hosts[0], reason))
            return TRY_AGAIN
        code = int(order.get("end", TRY_AGAIN))
        rank = self._settings.hosts.index(self._settings.host)
        # A failed entry point is the first host's to report; this one only followed.
        end = {"code": 0} if code == 0 else {"code": -signal.SIGTERM, "tornDown": True}
        write_record(self._state, 0, {"rank": rank, "localRank": 0, "endedAt": time.time(), **end})
        return 0 if code == 0 else TRY_AGAIN
