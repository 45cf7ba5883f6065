"""What the drivers of a job tell each other when one of them comes late."""

import socket
import sys
import threading

import pytest

from slipway_driver.coordinator import Coordinator
from slipway_driver.member import Member
from slipway_driver.peer_channel import PeerEnded, PeerLost, accept, connect
from slipway_driver.restart_policy import Report

SECRET = "s" * 32
SOCKETS = {"verdict": "sockets", "evidence": ["NCCL INFO Using network Socket"]}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize(("code", "kind"), [(74, "efa"), (134, "native-crash")])
def test_a_host_that_ends_before_the_first_one_listens_still_says_over_which_network_it_went(code: int, kind: str) -> None:
    port = free_port()
    member = Member("algo-2", "127.0.0.1", port, None, SECRET)
    assert not member.share("efa", {"verdict": "unknown", "evidence": []}) and not member.share("efa", SOCKETS)
    first = Coordinator(["algo-1", "algo-2"], "127.0.0.1", port, SECRET, 1, lambda: "")
    ends = threading.Thread(target=member.settle, args=(Report("algo-2", code, kind, "why", 3),))
    ends.start()
    decision, _ = first.settle(Report("algo-1", 75, "peer-lost", "another host's ranks ended", 3))
    ends.join()
    assert decision.cause.host == "algo-2" and decision.restart is (kind != "efa"), decision
    # A round that follows has networks of its own.
    assert first.reports("efa") == ({} if decision.restart else {"algo-2": SOCKETS})
    member.close()
    first.close()


@pytest.mark.parametrize("first_ends", [False, True])
def test_a_driver_that_has_ended_is_told_from_one_whose_connection_is_lost(first_ends: bool) -> None:
    port = free_port()
    first = Coordinator(["algo-1", "algo-2"], "127.0.0.1", port, SECRET, 1, lambda: "")
    member = Member("algo-2", "127.0.0.1", port, None, SECRET)
    assert member.share("progress", {}) or member._connected.wait(30)
    own = Report("algo-1", 75, "peer-lost", "connection closed by peer", 3)
    assert not first.another_ended and not member.another_ended
    if first_ends:
        first.close()
        decision, _ = member.settle(own._replace(host="algo-2"))
        assert member.another_ended
    else:
        member.close()
        decision, _ = first.settle(own)
        assert first.another_ended
    assert not decision.restart and decision.cause.kind == "peer-lost"
    first.close()
    member.close()


def test_a_driver_that_ends_does_not_connect_again() -> None:
    """The first host would wait for it again."""
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as server:
        member = Member("algo-2", "127.0.0.1", port, None, SECRET)
        accepted = accept(server.accept()[0], SECRET)
        assert member._connected.wait(30)
        member.close()
        while member._inbox.get(timeout=30) != ("lost", None):
            pass
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    accepted.close()


@pytest.mark.parametrize(
    ("error", "ended"),
    [(ConnectionResetError(104, "reset"), True), (TimeoutError(110, "timed out"), False), (OSError(113, "no route to host"), False)],
)
def test_only_a_closed_connection_shows_that_the_other_driver_has_ended(error: OSError, ended: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted = []
        side = threading.Thread(target=lambda: accepted.append(accept(server.accept()[0], SECRET)))
        side.start()
        client = connect("127.0.0.1", server.getsockname()[1], "algo-2", SECRET)
        side.join()

    class Broken:
        def readline(self, _size: int) -> bytes:
            raise error

    client._lines = Broken()  # type: ignore[assignment]
    with pytest.raises(PeerLost) as raised:
        client.receive()
    assert isinstance(raised.value, PeerEnded) is ended
    client.close()
    accepted[0].close()


@pytest.mark.parametrize("first_ends", [False, True])
def test_sigterm_ends_the_wait_for_a_driver_that_could_return(first_ends: bool) -> None:
    """A container has ended, and the service stops the others: nothing starts there again."""
    port, decisions = free_port(), []
    first = Coordinator(["algo-1", "algo-2"], "127.0.0.1", port, SECRET, 1, lambda: "")
    waiting = Member("algo-2", "127.0.0.1", port, None, SECRET) if first_ends else first
    if first_ends:
        while not first._channels:
            assert waiting._connected.wait(30)
        first._socket.close()
        first._channels["algo-2"].cut()
    else:
        connect("127.0.0.1", port, "algo-2", SECRET).cut()
    own = Report("algo-2" if first_ends else "algo-1", 75, "peer-lost", "connection closed by peer", 3)
    settling = threading.Thread(target=lambda: decisions.append(waiting.settle(own)), daemon=True)
    settling.start()
    waiting.stop()
    settling.join(30)
    assert [(decision.restart, decision.why) for decision, _ in decisions] == [(False, "the job is being stopped")]
    waiting.close()


def test_sigterm_ends_the_wait_for_the_first_connection() -> None:
    member = Member("algo-2", "127.0.0.1", free_port(), None, SECRET)
    member.stop()
    decision, _ = member.settle(Report("algo-2", 75, "peer-lost", "connection closed by peer", 3))
    assert decision.why == "the job is being stopped"
    member.close()


def test_no_return_is_awaited_where_the_ranks_would_not_start_again() -> None:
    """An error of the configuration ends the job, whether or not the other host's driver comes back."""
    port, decisions = free_port(), []
    first = Coordinator(["algo-1", "algo-2"], "127.0.0.1", port, SECRET, 1, lambda: "")
    connect("127.0.0.1", port, "algo-2", SECRET).cut()
    own = Report("algo-1", 77, "environment", "code.entryPoint: must exist", 3)
    settling = threading.Thread(target=lambda: decisions.append(first.settle(own)), daemon=True)
    settling.start()
    settling.join(30)
    assert [decision.restart for decision, _ in decisions] == [False]
    first.close()


def test_messages_of_two_threads_keep_their_numbers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted = []
        side = threading.Thread(target=lambda: accepted.append(accept(server.accept()[0], SECRET)))
        side.start()
        client = connect("127.0.0.1", server.getsockname()[1], "algo-2", SECRET)
        side.join()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    senders = [threading.Thread(target=lambda: [client.send("gpus") for _ in range(500)]) for _ in range(2)]
    for sender in senders:
        sender.start()
    try:
        assert [accepted[0].receive()[0] for _ in range(1000)] == ["gpus"] * 1000
    finally:
        sys.setswitchinterval(before)
        for sender in senders:
            sender.join()
        client.close()
        accepted[0].close()


def test_a_spare_host_that_connects_late_still_replaces_a_broken_one() -> None:
    port = free_port()
    first = Coordinator(["algo-1", "algo-2"], "127.0.0.1", port, SECRET, 2, lambda: "", spares=["algo-3"])
    second = Member("algo-2", "127.0.0.1", port, None, SECRET)
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
            spares.append(Member("algo-3", "127.0.0.1", port, None, SECRET))

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


@pytest.mark.parametrize("is_late", [False, True])
def test_the_first_host_hears_which_gpus_of_another_host_were_cleared(is_late: bool) -> None:
    """Also from a host whose check has ended before the first host listens."""
    port = free_port()
    member = Member("algo-2", "127.0.0.1", port, None, SECRET)
    if is_late:
        member.share("cleared", ["GPU-2"])
    first = Coordinator(["algo-1", "algo-2"], "127.0.0.1", port, SECRET, 1, lambda: "")
    try:
        assert member._connected.wait(30)
        if not is_late:
            member.share("cleared", ["GPU-2"])
        first.share("cleared", ["GPU-1"])
        member.finish(Report("algo-2", 0, "done", "", 1))
        first._take_while(lambda: not first.done, 30)
        assert first.reports("cleared") == {"algo-1": ["GPU-1"], "algo-2": ["GPU-2"]}
    finally:
        member.close()
        first.close()
