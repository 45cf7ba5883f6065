"""What a driver knows of the other drivers of its job, as far as that is the same on the first host and on the others."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union

from slipway_driver.restart_policy import Decision, Report

#: The end of an idle host's wait: the job is done, or the connection to the first host was lost.
RELEASED, CUT_OFF = "released", "cut-off"


class Side:
    """What `Coordinator` and `Member` do if it is the business of the other side."""

    def __init__(self) -> None:
        #: Reports of hosts that were found broken, on the first host.
        self.broken: List[Report] = []

    @property
    def spares_left(self) -> Optional[int]:
        """Number of spare hosts that can still replace a broken one; None if that is not known."""
        return None

    def reports(self, kind: str, wait_seconds: float = 0.0) -> Dict[str, Any]:
        """The newest reports of a kind by host, on the first host."""
        return {}

    def taken(self, kind: str) -> List[Tuple[str, Any]]:
        """On the first host, the reports of a kind since the previous call, with their hosts."""
        return []

    def announce(self, kind: str) -> None:
        """Tells the other hosts to end their ranks before this host does: evidence of a hang is lost once a launcher ends the ranks."""

    def heard(self) -> Union[Tuple[Decision, str], str, None]:
        """For an idle host: the next decision, RELEASED or CUT_OFF at the end of the wait, or None if there is no message."""
        return RELEASED
