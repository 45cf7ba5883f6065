"""Restart in place: who may ask for it, when it is granted, and whole jobs that live through a failure in the same containers."""

import os
import signal
import socket
import threading
from pathlib import Path

import pytest

from fake_s3 import FakeS3
from fake_world import FakeWorld, direct_checkpoints, job_json
from slipway_driver.newest_checkpoint import COMMITTED, newest_checkpoint, newest_marker
from slipway_driver.peer_channel import PeerChannel, PeerLost, accept, connect
from slipway_driver.restart_policy import Report, Start, decide
from slipway_s3 import S3Client

pytestmark = pytest.mark.jobs


def report(host: str = "algo-1", kind: str = "user-code", step: int | None = 5, reason: str = "") -> Report:
    return Report(host, 1, kind, reason or "reason of " + host, step)


SAVE = "a checkpoint could not be written: put: S3 answered %s (request id 4F)"


@pytest.mark.parametrize(
    ("reports", "missing", "left", "ends", "restart", "why"),
    [
        ([report()], [], 3, [], True, ""),
        ([report(step=None)], [], 3, [], False, "it failed before the first step"),
        ([report()], ["algo-2"], 3, [], False, "no answer from algo-2"),
        ([report()], [], 0, [], False, "no restarts are left"),
        ([report(kind="loss")], [], 3, [], False, "a restart does not fix: loss"),
        ([report(), report("algo-2", "hand-over")], [], 3, [], False, "a restart does not fix: hand-over"),
        ([report(step=5)], [], 3, [5], False, "no progress beyond step 5 of the previous start"),
        ([report(step=6)], [], 3, [5], True, ""),
        ([report(kind="hang", step=6)], [], 1, [2, 5], True, ""),
        ([report(kind="checkpoint", reason=SAVE % "403 AccessDenied")], [], 3, [], False, "a restart does not fix a denied access"),
        ([report(kind="data", reason="get: Forbidden")], [], 3, [], False, "a restart does not fix a denied access"),
        ([report(kind="data", reason="[Errno 13] Permission denied: 'x'")], [], 3, [], False, "a restart does not fix a denied access"),
        ([report(kind="data", reason="400 KMS.DisabledException")], [], 3, [], False, "a restart does not fix a denied access"),
        ([report(kind="checkpoint", reason=SAVE % "403 RequestTimeTooSkewed")], [], 3, [], True, ""),
        ([report(kind="checkpoint", reason=SAVE % "503 SlowDown")], [], 3, [], True, ""),
    ],
)
def test_restarts_are_granted_only_while_they_can_help(reports, missing, left, ends, restart, why) -> None:
    decision = decide(reports, missing, left, [Start(step, "algo-1") for step in ends], ["algo-1", "algo-2", "algo-3"], [])
    assert (decision.restart, decision.why) == (restart, why)


def test_the_cause_is_the_host_that_failed_for_a_reason_of_its_own() -> None:
    reports = [report("algo-1", "peer-lost"), report("algo-3", "user-code"), report("algo-2", "peer-lost")]
    assert decide(reports, [], 1, [], ["algo-1", "algo-2", "algo-3"], []).cause.host == "algo-3"


def pair(server_secret: str, client_secret: str) -> "tuple[PeerChannel | Exception, PeerChannel | Exception]":
    found: list[PeerChannel | Exception] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            found.append(accept(listening.accept()[0], server_secret))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        client: PeerChannel | Exception = connect("127.0.0.1", listening.getsockname()[1], "algo-2", client_secret)
    except Exception as error:
        client = error
    thread.join(5)
    listening.close()
    return found[0], client


def test_messages_pass_in_both_directions_between_holders_of_the_secret() -> None:
    server, client = pair("secret", "secret")
    assert isinstance(server, PeerChannel) and isinstance(client, PeerChannel)
    assert server.name == "algo-2"
    client.send("a", 'line\nbreak "quoted"')
    client.send("b", 2)
    server.send("c", 3)
    assert [server.receive(), server.receive(), client.receive()] == [("a", 'line\nbreak "quoted"'), ("b", 2), ("c", 3)]


def test_fails_for_a_client_without_the_secret() -> None:
    server, client = pair("secret", "guess")
    assert isinstance(server, PeerLost) and "did not know" in str(server)
    assert isinstance(client, (PeerLost, OSError))


def test_fails_on_a_message_that_was_changed_or_played_back() -> None:
    server, client = pair("secret", "secret")
    assert isinstance(server, PeerChannel) and isinstance(client, PeerChannel)
    lines: list[bytes] = []
    real = client._connection

    class Tap:
        def sendall(self, data: bytes) -> None:
            lines.append(data)
            real.sendall(data)

    client._connection = Tap()  # type: ignore[assignment]
    client.send("restart")
    assert server.receive() == ("restart", None)
    real.sendall(lines[0])
    with pytest.raises(PeerLost, match="not signed"):
        server.receive()


def test_the_newest_marked_checkpoint_is_found(tmp_path: Path) -> None:
    names = ["step-9/COMMITTED.json", "step-10/COMMITTED.json", "step-11/a", "x/step-12/COMMITTED.json"]
    assert newest_marker(names, COMMITTED) == "step-10/COMMITTED.json"
    assert newest_marker(["step-9/COMMITTED.json", "step-99999999999999999999/COMMITTED.json"], COMMITTED) == "step-9/COMMITTED.json"
    assert newest_checkpoint(str(tmp_path)) == newest_checkpoint("") == ""
    (tmp_path / "step-4").mkdir()
    (tmp_path / "step-4/COMMITTED.json").write_text("{}")
    assert newest_checkpoint(str(tmp_path)) == str(tmp_path / "step-4")


def test_a_file_latest_names_the_newest_checkpoint_beside_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    fake = FakeS3()
    request.addfinalizer(fake.close)
    client = S3Client(fake.environ)
    for name, text in (("global_step20/a.pt", "x"), ("global_step30/a.pt", "x"), ("latest", "global_step20\n")):
        path = tmp_path / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        fake.objects[f"/b/run/out/{name}"] = text.encode()
    for marker in ("out/latest", "*/latest"):
        assert newest_checkpoint(str(tmp_path), marker=marker) == str(tmp_path / "out/global_step20")
        assert newest_checkpoint("s3://b/run", client, marker) == "s3://b/run/out/global_step20"
    for text in ("", "..", "a/b", "global_step40", "x" * 300):
        (tmp_path / "out/latest").write_text(text)
        fake.objects["/b/run/out/latest"] = text.encode()
        assert newest_checkpoint(str(tmp_path), marker="out/latest") == newest_checkpoint("s3://b/run", client, "out/latest") == ""


#: Steps until 6. As FAIL says, algo-2 fails at step 3, once or always, when algo-1 has come to step 4 and waits there to be ended.
SCRIPT = """
import json, os, pathlib, sys, time
host, mark = os.environ["SM_CURRENT_HOST"], pathlib.Path(os.environ["SM_MODEL_DIR"]) / "failed"
checkpoints = pathlib.Path(os.environ["SLIPWAY_CHECKPOINT_URI"])
arrived = checkpoints / ("arrived-in-round-" + os.environ.get("SLIPWAY_RESTART", "0"))
first = int(os.environ["SLIPWAY_RESUME_FROM"].rsplit("-", 1)[-1] or 0) if os.environ["SLIPWAY_RESUME_FROM"] else 0
for step in range(first + 1, 7):
    print("slipway " + json.dumps({"event": "step", "step": step}), flush=True)
    if host == "algo-1" and step == 2:
        (checkpoints / "step-2").mkdir(parents=True, exist_ok=True)
        (checkpoints / "step-2/COMMITTED.json").write_text("{}")
    time.sleep(0.1)
    if step == 3 and host == "algo-2" and os.environ["FAIL"] != "peer" and (not mark.exists() or os.environ["FAIL"] == "always"):
        mark.write_text("")
        while not arrived.exists():
            time.sleep(0.05)
        raise RuntimeError("a passing trouble")
    if step == 4 and host == "algo-1":
        arrived.write_text("")
    if step == 4 and host == "algo-1" and os.environ["FAIL"] == "peer":
        while not (checkpoints / "gone").exists():
            time.sleep(0.05)
        raise RuntimeError("the other host is gone")
    waits = host == "algo-1" and ("SLIPWAY_RESTART" not in os.environ or os.environ["FAIL"] == "always")
    if step == 4 and (waits or os.environ["FAIL"] == "peer"):
        time.sleep(600)
print("finished in round", os.environ.get("SLIPWAY_RESTART", "0"), flush=True)
"""


def restarting_world(tmp_path: Path, fail: str, restarts: int = 3, peer_seconds: str = "120") -> FakeWorld:
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    job = job_json(env={"FAIL": fail, "SLIPWAY_PEER_SECONDS": peer_seconds}, restartsInPlace=restarts, checkpoints=checkpoints)
    (tmp_path / "checkpoints").mkdir()
    return FakeWorld(tmp_path / "world", 2, job, {"train.py": SCRIPT}, name=f"restart-{tmp_path.name}")


def test_all_hosts_start_again_from_the_newest_checkpoint_after_one_failed(tmp_path: Path) -> None:
    world = restarting_world(tmp_path, "once")
    world.start()
    assert world.wait() == [0, 0], world.log("algo-1") + world.log("algo-2")
    for host in world.hosts:
        assert "finished in round 1" in world.log(host)
        restart = world.events(host, "restart")[0]
        assert (restart["round"], restart["host"], restart["reason"]) == (1, "algo-2", "RuntimeError: a passing trouble")
        assert restart["resumeFrom"] == str(tmp_path / "checkpoints/step-2")
        assert [event["step"] for event in world.events(host, "step")][-4:] == [3, 4, 5, 6]


def test_a_failure_that_comes_back_without_progress_ends_the_job_with_its_cause(tmp_path: Path) -> None:
    world = restarting_world(tmp_path, "always")
    world.start()
    codes = world.wait()
    assert codes[1] == 1, world.log("algo-2")
    assert codes[0] == 75
    assert len(world.events("algo-2", "restart")) == 1
    assert "no progress beyond step" in world.log("algo-2")
    assert world.failure("algo-2")["reason"] == "RuntimeError: a passing trouble"


def test_no_restart_while_a_host_is_gone(tmp_path: Path) -> None:
    world = restarting_world(tmp_path, "peer", peer_seconds="2")
    world.start()
    world.wait_for("algo-1", "the drivers of all 2 hosts are connected")
    world.processes["algo-2"].kill()
    world.processes["algo-2"].wait()
    (tmp_path / "checkpoints/gone").write_text("")
    assert world.wait() == [1, -signal.SIGKILL]
    assert world.events("algo-1", "restart") == []
    assert "no restart in place: no answer from algo-2" in world.log("algo-1")


def test_a_host_whose_peer_has_ended_does_not_wait_for_a_better_reason(tmp_path: Path) -> None:
    """The other host's kernel has ended everything there, as when its instance dies: nothing will fail first."""
    script = """
import os, pathlib, time
gone = pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"]).parent / "gone"
print('slipway {"event":"step","step":1}', flush=True)
while not gone.exists():
    time.sleep(0.05)
raise RuntimeError("[gloo] Connection closed by peer [127.0.0.1]:29400")
"""
    world = FakeWorld(tmp_path / "world", 2, job_json(restartsInPlace=1), {"train.py": script})
    world.start({"SLIPWAY_PEER_SECONDS": "2"})
    world.wait_for("algo-1", "the drivers of all 2 hosts are connected")
    world.processes["algo-2"].kill()
    world.processes["algo-2"].wait()
    (world.root / "gone").touch()
    assert world.wait() == [75, -signal.SIGKILL], world.log("algo-1")
    assert "it ends in 2 s" in world.log("algo-1")


def test_a_host_that_is_stopped_does_not_wait_for_a_better_reason(tmp_path: Path) -> None:
    """SageMaker stops the other containers when one has ended: the reason of that one is known."""
    script = """
import signal, threading
stopped = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopped.set())
print('slipway {"event":"step","step":1}', flush=True)
while not stopped.wait(0.05):
    pass
raise RuntimeError("[gloo] Connection closed by peer [127.0.0.1]:29400")
"""
    world = FakeWorld(tmp_path / "world", 2, job_json(restartsInPlace=1), {"train.py": script})
    world.start()
    world.wait_for("algo-1", '"event":"step"')
    world.processes["algo-2"].kill()
    world.processes["algo-2"].wait()
    world.processes["algo-1"].terminate()
    assert world.wait() == [75, -signal.SIGKILL], world.log("algo-1")
    assert "SIGTERM: the ranks have" in world.log("algo-1") and "it ends in" not in world.log("algo-1")


def test_no_restart_without_a_host_whose_driver_never_came(tmp_path: Path) -> None:
    world = restarting_world(tmp_path, "peer", peer_seconds="1")
    (tmp_path / "checkpoints/gone").write_text("")
    world.start(only=["algo-1"])
    assert world.wait() == [1]
    assert "no restart in place: no answer from algo-2" in world.log("algo-1")


def test_no_restart_while_a_host_is_frozen(tmp_path: Path) -> None:
    world = restarting_world(tmp_path, "peer", peer_seconds="1")
    world.start()
    world.wait_for("algo-1", "the drivers of all 2 hosts are connected")
    os.kill(world.driver("algo-2"), signal.SIGSTOP)
    (tmp_path / "checkpoints/gone").write_text("")
    try:
        assert world.processes["algo-1"].wait(120) == 1
    finally:
        world.kill()
    assert "no restart in place: no answer from algo-2" in world.log("algo-1")


def test_one_host_restarts_by_itself(tmp_path: Path) -> None:
    script = """
import os, pathlib, sys
mark = pathlib.Path(os.environ["SM_MODEL_DIR"]) / "failed"
print('slipway {"event":"step","step":1}', flush=True)
if not mark.exists():
    mark.write_text("")
    sys.exit(5)
print("finished")
"""
    world = FakeWorld(tmp_path, 1, job_json(restartsInPlace=1), {"train.py": script})
    world.start()
    assert world.wait() == [0], world.log("algo-1")
    assert "finished" in world.log("algo-1")


def test_a_host_that_only_lost_its_peers_does_not_hide_the_cause_on_the_other(tmp_path: Path) -> None:
    """The host with the cause is asked to end before its rank has written the error down."""
    script = """
import os, pathlib, time
gone = pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"]).parent / "gone"
if os.environ["SM_CURRENT_HOST"] == "algo-1":
    gone.touch()
    raise RuntimeError("[gloo] Connection closed by peer [127.0.0.1]:29400")
while not gone.exists():
    time.sleep(0.05)
time.sleep(1)
raise ValueError("the cause is here")
"""
    world = FakeWorld(tmp_path, 2, job_json(), {"train.py": script})
    world.start({"SLIPWAY_PEER_SECONDS": "10"})
    assert world.wait() == [75, 1], world.log("algo-2")
    assert "the cause is here" in world.failure("algo-2")["reason"]
