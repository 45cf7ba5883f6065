"""Whole jobs whose ranks say which network NCCL uses: efa.json, the event, and what `efa: required | preferred | off` make of it."""

import json
from pathlib import Path

import pytest

from fake_world import FakeWorld, job_json

pytestmark = pytest.mark.jobs

INFO = "algo-1:218:412 [0] NCCL INFO "
HEALTHY = [
    INFO + "NET/OFI Initializing aws-ofi-nccl 1.17.3",
    INFO + "NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)",
    INFO + "Using network Libfabric",
    INFO + "Channel 00/0 : 7[7] -> 8[0] [receive] via NET/Libfabric/0/GDRDMA",
]
FELL_BACK = [*HEALTHY[:1], INFO + "NET/OFI aws-ofi-nccl initialization failed", INFO + "Using network Socket"]


def world(tmp_path: Path, lines: list[str], then: str = "", hosts: int = 2, **job: object) -> FakeWorld:
    prints = "for line in %r:\n    print(line, flush=True)\n" % lines
    script = "import os, sys, time\nhost = os.environ['SM_CURRENT_HOST']\n" + prints + then
    made = FakeWorld(tmp_path, hosts, job_json(**job), {"train.py": script})
    made.start()
    return made


def verdict(made: FakeWorld) -> dict:
    return json.loads((made.base("algo-1") / "output/data/efa.json").read_text())


def told(made: FakeWorld) -> list[str]:
    """The verdicts of the events, in their order; one that was told again when more hosts were heard stands once."""
    verdicts = [event["verdict"] for event in made.events("algo-1", "efa")]
    return [verdict for before, verdict in zip([None, *verdicts], verdicts, strict=False) if verdict != before]


def refused(made: FakeWorld) -> bool:
    """Whether the job ended for its network: the first host that refuses may end another before that does so itself."""
    codes = made.wait()
    classes = {made.failure(host)["class"] for host, code in zip(made.hosts, codes, strict=True) if code == 74}
    return classes == {"efa"} and all(code in (74, 75) for code in codes)


@pytest.mark.parametrize("efa", ["required", "preferred"])
def test_lines_behind_a_flood_and_on_stderr_still_give_the_verdict(tmp_path: Path, efa: str) -> None:
    flood = "for n in range(20000):\n    print('noise', n)\nfor line in %r:\n    print(line, file=sys.stderr, flush=True)" % HEALTHY
    made = world(tmp_path, [], flood + "\n" + flood.split("\n")[0] + "\n    print('noise', n)", efa=efa)
    assert made.wait() == [0, 0], made.log("algo-1")
    found = verdict(made)
    assert (found["verdict"], found["plugin"], found["interfaces"]) == ("efa+gdr", "aws-ofi-nccl 1.17.3", 32)
    assert made.events("algo-1", "efa")[-1]["verdict"] == "efa+gdr"
    assert made.events("algo-2", "efa") == [] and not (made.base("algo-2") / "output/data/efa.json").exists()


def test_fails_with_74_however_fast_a_required_efa_that_fell_back_ends(tmp_path: Path) -> None:
    made = world(tmp_path, FELL_BACK, "sys.exit(0 if host == 'algo-1' else 1)", efa="required")
    assert refused(made), made.log("algo-1")
    assert verdict(made)["verdict"] == "sockets"


def test_only_the_host_that_fell_back_refuses_to_go_on(tmp_path: Path) -> None:
    fallen = "if host == 'algo-2':\n    print(%r, flush=True)\n    time.sleep(600)" % FELL_BACK[-1]
    made = world(tmp_path, HEALTHY, fallen, efa="required")
    first, second = made.wait()
    # The first host may be done, or end because the other one does.
    assert first in (0, 75) and second == 74, made.log("algo-2")
    assert first == 0 or made.failure("algo-1")["class"] == "peer-lost", made.log("algo-1")
    assert "NCCL uses TCP sockets" in made.failure("algo-2")["reason"]


WAIT_FOR = """
file = os.environ['SAGEMAKER_BASE_DIR'] + '/../algo-1/output/data/efa.json'
def wait_for(word):
    while not (os.path.exists(file) and word in open(file).read()):
        time.sleep(0.05)
"""
STEP = "if host == 'algo-1':\n    print(%r, flush=True)\n" % 'slipway {"event":"step","step":1}'


def test_the_slowest_host_gives_the_verdict_of_the_job_with_its_evidence(tmp_path: Path) -> None:
    lines = "for line in (%r if host == 'algo-3' else %r):\n    print(line, flush=True)\n" % (FELL_BACK, HEALTHY)
    # All stay until the verdict is that of all: hosts of a job do not start together.
    made = world(tmp_path, [], lines + STEP + WAIT_FOR + "wait_for('\"efa+gdr\": 2')\nwait_for('\"sockets\": 1')", hosts=3)
    assert made.wait() == [0] * 3, made.log("algo-1")
    found = verdict(made)
    assert (found["verdict"], found["host"]) == ("sockets", "algo-3")
    assert found["hosts"] == {"sockets": 1, "efa+gdr": 2} and found["slowerHosts"] == ["algo-3"]
    assert FELL_BACK[-1] in found["evidence"][-1]
    last = made.events("algo-1", "efa")[-1]
    assert (last["verdict"], last["hosts"]) == ("sockets", found["hosts"])


def test_a_host_that_falls_back_in_the_middle_of_a_run_changes_the_verdict_of_the_job(tmp_path: Path) -> None:
    seen = """
if host == 'algo-2':
    wait_for('"efa+gdr": 2')
    print(%r, flush=True)
wait_for('"sockets": 1')
"""
    made = world(tmp_path, HEALTHY, STEP + WAIT_FOR + seen % FELL_BACK[-1])
    assert made.wait() == [0, 0], made.log("algo-1")
    # Before them a verdict may stand that was told between two lines of the other host.
    assert told(made)[-2:] == ["efa+gdr", "sockets"]
    assert verdict(made)["slowerHosts"] == ["algo-2"]


def test_hosts_that_share_no_secret_speak_for_themselves(tmp_path: Path) -> None:
    made = world(tmp_path, HEALTHY, restartSecret="")
    assert made.wait() == [0, 0], made.log("algo-1")
    assert verdict(made)["hosts"] == {"efa+gdr": 1}


def test_a_network_that_turns_out_slower_after_the_first_step_is_told_again_and_refused(tmp_path: Path) -> None:
    later = "wait_for('\"efa+gdr\": 2')\nprint(%r, flush=True)\ntime.sleep(600)" % FELL_BACK[-1]
    made = world(tmp_path, HEALTHY, STEP + WAIT_FOR + later, efa="required")
    assert refused(made), made.log("algo-1")
    # Before them a verdict may stand that was told between two lines of the other host.
    assert told(made)[-2:] == ["efa+gdr", "sockets"]
    assert verdict(made)["verdict"] == "sockets"


@pytest.mark.parametrize(("efa", "hosts", "expected"), [("preferred", 2, ["sockets"]), ("off", 2, []), ("required", 1, ["single-host"])])
def test_sockets_are_no_reason_to_end_where_efa_is_not_required_or_there_is_one_host(
    tmp_path: Path, efa: str, hosts: int, expected: list[str]
) -> None:
    made = world(tmp_path, FELL_BACK, hosts=hosts, efa=efa)
    assert made.wait() == [0] * hosts, made.log("algo-1")
    assert told(made) == expected
    assert (made.base("algo-1") / "output/data/efa.json").exists() is bool(expected)


def test_without_a_word_of_nccl_a_required_efa_is_unknown_and_goes_on(tmp_path: Path) -> None:
    made = world(tmp_path, ["NCCL version 2.27.5+cuda12.9"], efa="required", env={"NCCL_DEBUG": "WARN"}, userPinned=["NCCL_DEBUG"])
    assert made.wait() == [0, 0], made.log("algo-1")
    assert (verdict(made)["verdict"], verdict(made)["nccl"]) == ("unknown", "2.27.5")


def test_a_secret_in_an_exception_is_in_no_failure_file_and_no_event(tmp_path: Path) -> None:
    raises = "raise RuntimeError('cannot log in with ' + os.environ['DB_PASSWORD'] + ' at https://bot:gh0st-in-here@db/')"
    made = world(tmp_path, [], raises, hosts=1, env={"DB_PASSWORD": "correct horse battery"})
    assert made.wait() == [1]
    shown = (made.base("algo-1") / "output/failure").read_text() + json.dumps(made.events("algo-1", "exit"))
    assert "RuntimeError: cannot log in with *** at https://bot:***@db/" in shown
    assert "battery" not in shown and "gh0st" not in shown


def test_fails_with_74_when_one_of_32_interfaces_carries_a_required_efa(tmp_path: Path) -> None:
    few = [line.replace("32 nics", "1 nics") for line in HEALTHY]
    script = "import time\nfor line in %r:\n    print(line, flush=True)\ntime.sleep(600)\n" % few
    made = FakeWorld(tmp_path, 2, job_json(efa="required"), {"train.py": script})
    for host in made.hosts:
        resources = made.base(host) / "input/config/resourceconfig.json"
        resources.write_text(resources.read_text().replace("ml.m5.large", "ml.p5.48xlarge"))
    made.start()
    assert refused(made), made.log("algo-1")
    reasons = [made.failure(host)["reason"] for host in made.hosts]
    assert any("NCCL uses 1 of 32 EFA interfaces, fewer than half" in reason for reason in reasons), reasons
