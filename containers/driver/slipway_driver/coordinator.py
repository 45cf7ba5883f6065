"""The first host's side of the driver protocol: collects the reports of all hosts and decides whether the ranks start again.

A start ends when any host reports the end of its ranks (`end_requested`). `settle` then ends them on all hosts, waits for the reports, lets
`restart_policy.decide` choose between the hosts and spares that are there, and sends the decision. Hosts that never connected are awaited
for 15 s, drivers that were killed for 60 s, all others for 90 s; a host without a report means that nothing starts again.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import queue
import socket
import threading
import time
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

from slipway_driver.gpus import is_evidence
from slipway_driver.log import log
from slipway_driver.peer_channel import LATE_SECONDS, REPORT_SECONDS, RETURN_SECONDS, PeerChannel, PeerEnded, PeerLost, serve
from slipway_driver.restart_policy import (
    STOPPED,
    Decision,
    Report,
    RestartBudget,
    Start,
    decide,
    last_step,
    lost_driver,
)

#: Reports that are handed out once, and how many of them are kept until then.
QUEUED, MAX_QUEUED = ("gpus", "progress"), 4096


class Decisions:
    """What the deciding host has decided, for the next driver of the host. `facts` is empty before the first decision."""

    def __init__(self, file: Optional[int] = None) -> None:
        self._file = file
        self.facts: Dict[str, Any] = {}
        if file is not None:
            with contextlib.suppress(ValueError):
                # What follows is the end of a longer text that a killed driver had no time to cut off.
                self.facts = dict(json.JSONDecoder().raw_decode(os.pread(file, os.fstat(file).st_size, 0).decode())[0])

    def keep(self, **facts: Any) -> None:
        """Adds facts, and writes all of them."""
        self.facts.update(facts)
        if self._file is not None:
            data = json.dumps(self.facts).encode()
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, os.pwrite(self._file, data, 0))


class Coordinator:
    """Runs on the first host, and on a host without others. `hosts`: the training hosts in rank order; `spares`: the spare hosts."""

    def __init__(
        self, hosts: Sequence[str], bind_to: str, port: int, secret: str, restarts: int,
        resume_from: Callable[[], str], report_seconds: float = REPORT_SECONDS, spares: Sequence[str] = (),
        kept: Optional[Decisions] = None,
    ) -> None:  # fmt: skip
        #: Reports of hosts that were found broken.
        self.broken: List[Report] = []
        self._own, self._hosts, self._spares = hosts[0], list(hosts), list(spares)
        self._all = len(hosts) + len(spares)
        self._budget, self._resume_from, self._patience = RestartBudget(restarts), resume_from, report_seconds
        self._channels: Dict[str, PeerChannel] = {}
        self._inbox: "queue.Queue[tuple[PeerChannel, str, Any]]" = queue.Queue()
        self._early: List[Report] = []
        #: By kind and host.
        self._reports: Dict[str, Dict[str, Any]] = collections.defaultdict(dict)
        self._queued: Dict[str, Deque[Tuple[str, Any]]] = {kind: collections.deque(maxlen=MAX_QUEUED) for kind in QUEUED}
        #: Hosts whose connection was lost: until when their driver may return, and whether it has ended.
        self._lost: Dict[str, Tuple[float, bool]] = {}
        self._stopping = False
        #: By host that has finished, why that was early; "" if it was not.
        self.done: Dict[str, str] = {}
        self._starts: List[Start] = []
        self._kept = kept or Decisions()
        if self._kept.facts:
            self._hosts, self._spares = self._kept.facts["hosts"], self._kept.facts["spares"]
            self._starts = [Start(*start) for start in self._kept.facts["starts"]]
            self._budget.taken = self._kept.facts["taken"]
        self._lock, self._closed = threading.Lock(), False
        self._socket: Optional[socket.socket] = None
        if self._all > 1:
            self._socket = socket.create_server((bind_to, port), backlog=self._all)
            serve(self._socket, secret, self._listen)

    def _listen(self, channel: PeerChannel) -> None:
        with self._lock:
            if self._closed:
                return channel.close()
            self._channels[channel.name] = channel
            if len(self._channels) == self._all - 1:
                log("the drivers of all %d hosts are connected" % self._all)
        while True:
            try:
                self._inbox.put((channel, *channel.receive()))
            except (PeerLost, ValueError) as error:
                returns = isinstance(error, PeerEnded) and not error.for_good
                seconds = min(RETURN_SECONDS, self._patience) if returns else 0.0
                self._inbox.put((channel, "lost", (time.monotonic() + seconds, isinstance(error, PeerEnded))))
                return

    @property
    def _others(self) -> List[str]:
        """All training hosts except this one, which may have been replaced."""
        return [host for host in self._hosts if host != self._own]

    def _take(self, timeout: float) -> bool:
        """Processes one message from the inbox; False if there was none within `timeout` seconds."""
        try:
            channel, kind, content = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return False
        host = channel.name
        if kind == "lost":
            if host not in self.done and channel is self._channels[host]:
                self._lost[host] = content
        elif kind == "again":
            self._return(host)
        elif kind == "ended":
            report = Report(*content)
            if report.kind == "done":
                self.done[host] = report.reason
            else:
                self._early.append(report)
        else:
            self._note(host, kind, content)
        return True

    def _note(self, host: str, kind: str, content: Any) -> None:
        if kind in QUEUED:
            self._queued[kind].append((host, content))
        else:
            self._reports[kind][host] = content

    def _return(self, host: str) -> None:
        """The driver of a host was started again, and with it nothing of its ranks is left."""
        self._lost.pop(host, None)
        if host in self._others and host not in self.done:
            self._early = [*(report for report in self._early if report.host != host), lost_driver(host)]

    def _take_while(self, waiting: Callable[[], bool], seconds: float) -> None:
        """Processes messages while `waiting()` is true, until SIGTERM and for at most `seconds`."""
        deadline = time.monotonic() + seconds
        while waiting() and not self._stopping and time.monotonic() < deadline:
            self._take(0.1)

    def end_requested(self) -> Optional[str]:
        """Returns the failure class because of which this host must end its ranks; None if no host has reported a failure.

        A lost connection alone is not sufficient: NCCL reports a lost host itself, and a network problem between drivers must not end a
        healthy job.
        """
        while self._take(0.0001):
            pass
        return self._early[0].kind if self._early else None

    def announce(self, kind: str) -> None:
        """Tells the other hosts to end their ranks before this host does: evidence of a hang is lost once a launcher ends the ranks."""
        self._send("end", kind)

    def share(self, kind: str, content: Any) -> bool:
        """Keeps a report of this host, which reads its own progress lines itself. Always True."""
        if kind != "progress":
            self._note(self._own, kind, content)
        return True

    def reports(self, kind: str, wait_seconds: float = 0.0) -> Dict[str, Any]:
        """The newest reports by host. Waits for missing ones, also of hosts that have not connected yet, unless a host has failed."""
        found = self._reports[kind]
        self._take_while(lambda: not found.keys() >= set(self._others) and not self._early and not self._cut_off(), wait_seconds)
        return dict(found)

    def taken(self, kind: str) -> List[Tuple[str, Any]]:
        """The reports of a kind since the previous call, with their hosts."""
        waiting = self._queued[kind]
        return [waiting.popleft() for _ in range(len(waiting))]

    def all_ended(self) -> bool:
        """Whether the ranks of every other training host have ended, as far as this host can know."""
        return {*self.done, *(report.host for report in self._early), *self._without_return()}.issuperset(self._others)

    def all_done(self) -> bool:
        """Whether every other training host has finished."""
        return self.done.keys() >= set(self._others)

    def stop(self) -> None:
        """Called on SIGTERM: the job is ending, so no host is waited for."""
        self._stopping = True

    def finish(self, own: Report) -> None:
        """Called when this host has finished. Training hosts finish or fail by themselves; idle hosts are released."""
        self._send("release")

    def settle(self, own: Report) -> "tuple[Decision, str]":
        """Ends the ranks on all hosts, collects every report, and sends the decision to all hosts. Returns the decision and the checkpoint
        to resume from ("" for none). EFA reports are kept if the ranks do not start again."""
        # A driver that was killed before it connected never reports.
        late = min(LATE_SECONDS, self._patience)
        self._take_while(lambda: bool(self._awaited()) and not self._cut_off(), late)
        self._send("end", own.kind)
        self._take_while(lambda: len(self._early) + len(self.done) < len(self._others) and not self._in_vain(own), self._patience)
        reports = list(self._early)
        reports.insert(0 if own.kind != "peer-lost" else len(reports), own)
        self.broken += [report for report in reports if is_evidence(report)]
        answered = {report.host for report in reports}
        missing = [host for host in self._others if host not in answered or host in self._gone()]

        def restarts_with(spares: Sequence[str]) -> bool:
            return self._decide(reports, missing, spares).restart

        # A spare host that has not connected yet may help.
        self._take_while(lambda: not restarts_with(self._waiting()) and restarts_with(self._intact_spares()), late)
        decision = self._decide(reports, missing, self._waiting())
        if self._stopping:
            decision = decision._replace(restart=False, why=STOPPED)
        resume_from = self._resume_from() if decision.restart else ""
        self._send("decision", [decision, resume_from])
        if decision.restart:
            self._budget.take()
            self._starts.append(Start(last_step(reports), decision.cause.host))
            # A replaced host is in neither list, so that nothing starts on it again.
            self._hosts = list(decision.hosts)
            self._spares = [host for host in self._intact_spares() if host not in decision.hosts]
            self._reports["efa"] = {}
            self._kept.keep(hosts=self._hosts, spares=self._spares, starts=self._starts, taken=self._budget.taken)
        self._early = []
        for waiting in self._queued.values():
            waiting.clear()
        return decision, resume_from

    def _in_vain(self, own: Report) -> bool:
        """Whether a host cannot report, or need not return because the ranks do not start again without it either."""
        if self._gone():
            return True
        return bool(self._cut_off()) and not self._decide([*self._early, own], [], self._intact_spares()).restart

    def _decide(self, reports: Sequence[Report], missing: Sequence[str], spares: Sequence[str]) -> Decision:
        return decide(reports, missing, self._budget.left(), self._starts, self._hosts, spares)

    def _waiting(self) -> List[str]:
        """Spare hosts that can replace a broken one now."""
        return [host for host in self._intact_spares() if host in self._channels]

    def _intact_spares(self) -> List[str]:
        """Spare hosts whose connection was not lost."""
        return [host for host in self._spares if host not in self._lost]

    @property
    def spares_left(self) -> Optional[int]:
        """Number of spare hosts that can still replace a broken one; None for a host without others."""
        return len(self._intact_spares()) if self._all > 1 else None

    @property
    def another_ended(self) -> bool:
        """Whether the driver of another training host has ended before the job was done."""
        return any(self._lost[host][1] for host in self._cut_off())

    def _gone(self) -> List[str]:
        """Training hosts that cannot report, now or after a return of their driver."""
        return [*self._without_return(), *self._awaited()]

    def _without_return(self) -> List[str]:
        """Training hosts whose connection was lost, and whose driver can no longer return."""
        return [host for host in self._cut_off() if time.monotonic() >= self._lost[host][0]]

    def _cut_off(self) -> List[str]:
        """Training hosts whose connection was lost."""
        return [host for host in self._others if host in self._lost]

    def _awaited(self) -> List[str]:
        """Training hosts that have not connected yet."""
        return [host for host in self._others if host not in self._channels]

    def _send(self, kind: str, content: Any = None) -> None:
        for channel in list(self._channels.values()):
            with contextlib.suppress(PeerLost):  # The thread that reads from the channel reports the loss.
                channel.send(kind, content)

    def close(self) -> None:
        """Closes the listening socket and all channels."""
        with self._lock:
            self._closed = True
        if self._socket:
            self._socket.close()
        for channel in self._channels.values():
            channel.close()
