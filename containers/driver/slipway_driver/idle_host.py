"""A host that does not train: a spare one that waits until another's hardware breaks, or one whose own hardware broke.

Its container must stay: the service ends the whole job when one container ends badly, and knows a host's place in the job only as long as
it lives.
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

#: What ends a wait: the decision of a round, or how this host ends.
Heard = Union[Tuple[Decision, str], Failure]


class IdleHost:
    """Waits for the first host's word. A spare host keeps a copy of the newest checkpoint meanwhile."""

    def __init__(self, peers: Peers, mirror: Optional[Mirror]) -> None:
        self._peers, self._mirror = peers, mirror
        self._stopped = threading.Event()

    def stop(self) -> None:
        """SIGTERM came: there is nothing to save here."""
        self._stopped.set()

    def wait(self) -> Heard:
        """The next decision, or how this host ends: well when all is done, badly when the first host is gone."""
        while not self._stopped.wait(POLL_SECONDS):
            heard = self._peers.heard()
            if heard == CUT_OFF:
                return Failure(TRY_AGAIN, "peer-lost", None, "the first host's driver is gone", [])
            if heard == RELEASED:
                break
            if isinstance(heard, tuple):
                return heard
        return Failure(DONE, class_of(DONE), None, "", [])

    def leave(self) -> None:
        """Its wait is over."""
        if self._mirror:
            self._mirror.stop()


def idle_host(attempt: Attempt, peers: Peers, set_aside: bool) -> IdleHost:
    """`set_aside`: this host has trained before, and never will again."""
    if set_aside:
        log("this host is set aside: its place is taken, and it waits for the end of the job")
        return IdleHost(peers, None)
    log("this host is a spare: it waits until another one's hardware breaks")
    mirror = mirror_of(attempt)
    if mirror:
        mirror.start()
    return IdleHost(peers, mirror)
