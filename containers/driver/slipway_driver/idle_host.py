"""A host that does not train: a spare host, or a host that was replaced because its hardware failed.

Its container must keep running: SageMaker ends the whole job if one container fails, and a host belongs to the job only while its
container runs.
"""

from __future__ import annotations

import threading
from typing import Optional, Tuple, Union

from slipway_driver.attempt import Attempt
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import DONE, TRY_AGAIN, class_of
from slipway_driver.log import log
from slipway_driver.member import CUT_OFF, RELEASED
from slipway_driver.mirror import Mirror, mirror_of
from slipway_driver.peers import Peers
from slipway_driver.restart_policy import Decision

POLL_SECONDS = 0.1

#: Result of a wait: the decision of the first host, or the outcome of this host.
Heard = Union[Tuple[Decision, str], Failure]


class IdleHost:
    """Waits for a message from the first host. Meanwhile a spare host keeps a copy of the newest checkpoint."""

    def __init__(self, peers: Peers, mirror: Optional[Mirror]) -> None:
        self._peers, self._mirror = peers, mirror
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Called on SIGTERM: this host has nothing to save."""
        self._stopped.set()

    def wait(self) -> Heard:
        """The next decision, or the outcome of this host: success when the job is done, failure if the first host is lost."""
        while not self._stopped.wait(POLL_SECONDS):
            heard = self._peers.heard()
            if heard == CUT_OFF:
                return Failure(TRY_AGAIN, "peer-lost", None, "the connection to the first host's driver was lost", [])
            if heard == RELEASED:
                break
            if isinstance(heard, tuple):
                return heard
        return Failure(DONE, class_of(DONE), None, "", [])

    def leave(self) -> None:
        """Called when the wait is over: stops the copies."""
        if self._mirror:
            self._mirror.stop()


def idle_host(attempt: Attempt, peers: Peers, set_aside: bool) -> IdleHost:
    """`set_aside`: this host has trained before and does not train again."""
    if set_aside:
        log("this host was replaced by a spare host and waits for the end of the job")
        return IdleHost(peers, None)
    log("this host is a spare: it waits to replace a host whose hardware fails")
    mirror = mirror_of(attempt)
    if mirror:
        mirror.start()
    return IdleHost(peers, mirror)
