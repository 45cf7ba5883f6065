"""What the drivers of a job tell each other when one of them comes late."""

import socket
import threading

import pytest

from slipway_driver.coordinator import Coordinator
from slipway_driver.member import Member
from slipway_driver.restart_policy import Report

SECRET = "s" * 32
SOCKETS = {"verdict": "sockets", "evidence": ["NCCL INFO Using network Socket"]}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize(("code", "kind"), [(74, "efa"), (134, "native-crash")])
def test_a_host_that_ends_before_the_first_one_listens_still_says_over_which_network_it_went(code: int, kind: str) -> None:
    port = free_port()
    member = Member("algo-2", "127.0.0.1", port, None, SECRET, print)
    assert not member.share_efa({"verdict": "unknown", "evidence": []}) and not member.share_efa(SOCKETS)
    first = Coordinator(["algo-1", "algo-2"], "127.0.0.1", port, SECRET, 1, print, lambda: "")
    ends = threading.Thread(target=member.settle, args=(Report("algo-2", code, kind, "why", 3),))
    ends.start()
    decision, _ = first.settle(Report("algo-1", 75, "peer-lost", "another host's ranks ended", 3))
    ends.join()
    assert decision.cause.host == "algo-2" and decision.restart is (kind != "efa"), decision
    # A round that follows has networks of its own.
    assert first.efa_reports() == ({} if decision.restart else {"algo-2": SOCKETS})
    member.close()
    first.close()


def test_a_spare_host_that_connects_late_still_replaces_a_broken_one() -> None:
    port = free_port()
    first = Coordinator(["algo-1", "algo-2"], "127.0.0.1", port, SECRET, 2, print, lambda: "", spares=["algo-3"])
    second = Member("algo-2", "127.0.0.1", port, None, SECRET, print)
    spares = []

    heard = threading.Event()
    take = first._take

    def taken(seconds: float) -> bool:
        found = take(seconds)
        if first._early:
            heard.set()
        return found

    def connects_late() -> None:
        if heard.wait(30):
            spares.append(Member("algo-3", "127.0.0.1", port, None, SECRET, print))

    first._take = taken
    ends = Report("algo-2", 70, "hardware", "a GPU is gone", None)
    threads = [threading.Thread(target=connects_late, daemon=True), threading.Thread(target=second.settle, args=(ends,), daemon=True)]
    for thread in threads:
        thread.start()
    decision, _ = first.settle(Report("algo-1", 75, "peer-lost", "another host's ranks ended", None))
    assert (decision.restart, decision.hosts) == (True, ("algo-1", "algo-3")), decision
    assert first.spares_left == 0
    for peer in (first, second, *spares):
        peer.close()
