"""Judgements of the driver: the first real error, the failure file, the watchdog."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fake_world import job_json
from slipway_driver.error_collector import ErrorCollector
from slipway_driver.errors import Failure, classify, failure_text, first_real, parse_oom_kills
from slipway_driver.job import parse_job
from slipway_driver.launchers import launched
from slipway_driver.progress import FoundSteps, ProgressReader, parse_event
from slipway_driver.supervisor import Supervisor
from slipway_driver.watchdog import Watchdog, watchdog_of

TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
ValueError: the learning rate must be positive
"""
GLOO_LOST = """Traceback (most recent call last):
  File "train.py", line 9, in <module>
    dist.all_reduce(x)
RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4711
"""
NCCL_TIMEOUT = """[rank3]:[E1121 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42)
"""


def record(rank: int, code: int, stderr: str = "", at: float = 10.0, stopped: bool = False) -> dict[str, Any]:
    collector = ErrorCollector()
    for line in stderr.splitlines():
        collector.feed(line, at)
    return {"rank": rank, "localRank": rank, "code": code, "endedAt": at + 1, "errorAt": collector.at, "summary": collector.summary,
            "tail": collector.tail, "killed": collector.killed, "stopped": stopped}  # fmt: skip


def test_the_first_real_error_wins_over_earlier_noise() -> None:
    records = [record(0, 1, GLOO_LOST, at=5), record(1, 1, TRACEBACK, at=6), record(2, -15, at=7), record(3, 0)]
    found = first_real(records)
    assert found is not None and found["rank"] == 1
    end = classify(found, out_of_memory=False)
    assert (end.code, end.kind, end.reason) == (1, "user-code", "ValueError: the learning rate must be positive")


def test_of_two_real_errors_the_earlier_is_shown() -> None:
    other = TRACEBACK.replace("learning rate", "batch size")
    found = first_real([record(0, 1, TRACEBACK, at=9), record(1, 1, other, at=8)])
    assert found is not None and found["summary"].startswith("ValueError: the batch size")


def test_a_rank_s_own_code_of_the_contract_wins_over_other_tracebacks() -> None:
    found = first_real([record(0, 1, TRACEBACK, at=5), record(1, 72, "slipway_trainer: error: shard 3 is missing", at=9)])
    assert found is not None
    end = classify(found, out_of_memory=False)
    assert (end.code, end.kind, end.reason) == (72, "data", "slipway_trainer: error: shard 3 is missing")


@pytest.mark.parametrize(
    ("found", "out_of_memory", "code", "kind"),
    [
        (record(0, 1, GLOO_LOST), False, 75, "peer-lost"),
        (record(0, -6, NCCL_TIMEOUT), False, 70, "hang"),
        (record(0, 1, "RuntimeError: Timed out waiting 600000ms for recv operation to complete"), False, 70, "hang"),
        (record(0, -9), True, 137, "host-memory"),
        (record(0, -9), False, 137, "user-code"),
        (record(0, -11, "Segmentation fault (core dumped)"), False, 139, "user-code"),
        (record(0, 3), False, 3, "user-code"),
        (record(0, 76), False, 76, "hand-over"),
    ],
)
def test_exit_codes_by_class(found: dict[str, Any], out_of_memory: bool, code: int, kind: str) -> None:
    end = classify(found, out_of_memory)
    assert (end.code, end.kind) == (code, kind)


def test_of_a_chain_of_exceptions_the_last_is_the_summary_and_all_are_kept() -> None:
    chained = TRACEBACK + "\nThe above exception was the direct cause of the following exception:\n\n" + TRACEBACK.replace(
        "ValueError: the learning rate must be positive", "my.package.ConfigError: bad file"
    )  # fmt: skip
    found = record(0, 1, chained)
    assert found["summary"] == "my.package.ConfigError: bad file"
    assert "ValueError: the learning rate must be positive" in found["tail"]


def test_the_failure_file_fits_in_1024_characters_and_keeps_the_end_of_the_traceback() -> None:
    lines = [f"  line {number} " + "x" * 50 for number in range(100)] + ["ValueError: at the end"]
    text = failure_text(Failure(1, "user-code", 17, "ValueError: at the end", lines, "algo-3"), 1200)
    assert len(text) <= 1024
    head, *rest = text.split("\n")
    assert json.loads(head) == {"slipway": 1, "class": "user-code", "code": 1, "host": "algo-3", "rank": 17, "step": 1200,
                                "reason": "ValueError: at the end"}  # fmt: skip
    assert rest[-1] == "ValueError: at the end"
    assert len(rest) > 5


def test_a_failure_file_of_the_script_stays_and_ours_goes_after_it() -> None:
    text = failure_text(Failure(1, "user-code", 0, "bad", [], "algo-1"), None, "my own words\n")
    assert text.split("\n")[0] == "my own words"
    assert json.loads(text.split("\n")[1])["code"] == 1


def test_a_failure_file_of_the_script_that_leaves_no_room_stays_alone() -> None:
    assert failure_text(Failure(1, "user-code", 0, "bad", [], "algo-1"), None, "x" * 1000) == "x" * 1000


def watchdog(may_stop: bool = True) -> Watchdog:
    return Watchdog(startup_seconds=100, silence_seconds=20, may_stop=may_stop, now=0)


def test_silence_before_the_first_step_has_a_budget_of_its_own() -> None:
    dog = watchdog()
    assert dog.verdict(99) is None
    assert dog.verdict(101) == "no first step within 100 s"


def test_silence_between_steps_is_a_hang() -> None:
    dog = watchdog()
    dog.feed({"event": "step", "step": 3}, 50)
    assert dog.verdict(69) is None
    assert dog.verdict(71) == "no progress for 21 s after step 3"


def test_a_stall_that_the_trainer_reports_is_a_hang_at_once_unless_a_step_follows() -> None:
    dog = watchdog()
    dog.feed({"event": "stall", "step": 3, "seconds": 75}, 40)
    assert dog.verdict(41) is None, "no step was seen"
    dog.feed({"event": "step", "step": 4}, 50)
    dog.feed({"event": "stall", "step": 3, "seconds": 75}, 51)
    assert dog.verdict(52) == "no progress for 75 s after step 3, from which a restart continues"
    dog.feed({"event": "stall", "step": 4, "seconds": 75, "silent": [*range(9)]}, 52)
    assert dog.verdict(52).endswith("continues; rank 0, 1, 2, 3, 4, 5, 6, 7 and 1 more did not respond")
    dog.feed({"event": "stall", "step": 4, "seconds": 75, "silent": ["3", {}]}, 52)
    assert dog.verdict(52).endswith("continues")
    dog.feed({"event": "step", "step": 5}, 53)
    assert dog.verdict(54) is None


def test_a_declared_phase_has_its_own_budget() -> None:
    dog = watchdog()
    dog.feed({"event": "step", "step": 3}, 50)
    dog.feed({"event": "phase", "name": "eval", "state": "begin", "budgetSeconds": 300}, 51)
    assert dog.phase == "eval"
    assert dog.verdict(340) is None
    assert dog.verdict(352) == "phase eval exceeded its time limit"
    dog.feed({"event": "phase", "name": "eval", "state": "end"}, 360)
    assert dog.verdict(379) is None
    assert dog.verdict(381) is not None


def test_own_code_that_shows_no_progress_is_only_watched_until_its_first_step() -> None:
    dog = watchdog(may_stop=False)
    assert dog.verdict(101) is not None and not dog.may_stop
    dog.feed({"event": "step", "step": 1}, 102)
    assert dog.may_stop


def test_a_trainer_whose_lines_never_come_is_only_watched_and_one_whose_bar_stands_still_is_stopped() -> None:
    dog = Watchdog(startup_seconds=100, silence_seconds=20, may_stop=False, now=0, shows_progress=True)
    assert dog.verdict(101) is not None and not dog.may_stop
    dog.feed({"event": "bar"}, 110)
    assert dog.verdict(209) is None
    dog.feed({"event": "metric", "loss": 2.5}, 200)
    assert dog.verdict(299) is None
    assert dog.verdict(301) == "no progress for 101 s, and no step so far"
    assert dog.may_stop
    unnamed = watchdog(may_stop=False)
    unnamed.feed({"event": "metric", "loss": 2.5}, 50)
    assert not unnamed.may_stop


@pytest.mark.parametrize(("progress", "stops"), [
    ({"format": "lightning"}, False), ({"format": "auto"}, False), ({"stepRegex": "step (.)", "format": "lightning"}, True),
])  # fmt: skip
def test_a_hang_before_the_first_step_ends_only_programs_that_are_known_to_show_it(progress: "dict[str, str]", stops: bool) -> None:
    job = parse_job(job_json(progress=progress))
    assert watchdog_of(SimpleNamespace(job=job, environ={}), 0).may_stop is stops  # type: ignore[arg-type]


def test_steps_are_read_from_progress_lines_and_from_the_run_file_s_expression() -> None:
    reader = ProgressReader(r"step=(\d+)")
    assert reader.read('slipway {"event":"step","step":4}') == {"event": "step", "step": 4}
    assert reader.read("[rank 0] step=17 loss=2") == {"event": "step", "step": 17}
    assert reader.read("slipway {broken") is None
    assert reader.read("loss=2") is None
    assert ProgressReader(None).read("step=17") is None


def test_the_loss_is_read_beside_the_step_or_alone() -> None:
    reader = ProgressReader(r"step=(\d+)", r"loss[=:] ?([-+.0-9e]+)")
    assert reader.read("[rank 0] step=17 loss=2.5e-1") == {"event": "step", "step": 17, "loss": 0.25}
    assert reader.read("eval loss: 3.5") == {"event": "metric", "loss": 3.5}
    assert reader.read("step=18 loss=-.") == {"event": "step", "step": 18}
    assert reader.read("nothing here") is None
    assert ProgressReader(None, r"loss=(\d+)").read("loss=4") == {"event": "metric", "loss": 4.0}


@pytest.mark.parametrize(
    "output, found",
    [
        (["step=1 loss=4", "step=2 loss=3"], [(1, 4.0), (2, 3.0)]),
        (["step=1", "loss=4", "step=2", "loss=3"], [(1, 4.0), (2, 3.0)]),
        (["loss=4", "step=1", "loss=3", "step=2"], [(1, 4.0), (2, 3.0)]),
        (["step=1", "step=2", "loss=3", "step=3"], [(1, None), (2, 3.0), (3, None)]),
        (["[rank 1] step=1 loss=5", "[rank 0] step=1 loss=4", "[rank 1] step=2 loss=3"], [(1, 5.0), (2, 3.0)]),
        (["step=1 loss=nan"], [(1, None)]),
        (['slipway {"event":"step","step":1}', "step=1 loss=4"], []),
    ],
)
def test_steps_that_expressions_find_become_progress_lines(output, found):  # type: ignore[no-untyped-def]
    reader, steps = ProgressReader(r"step=(\d+)", r"loss=([-+.0-9a-z]+)"), FoundSteps(expects_loss=True)
    lines = []
    for line in output:
        event = reader.read(line)
        lines += steps.feed(line, event) if event else []
    events = [parse_event(line)[0] for line in lines + steps.end()]
    assert [(event["step"], event.get("loss")) for event in events if event] == found
    assert all(event and event["event"] == "step" for event in events)


def test_without_an_expression_for_the_loss_a_step_is_said_at_once():  # type: ignore[no-untyped-def]
    assert FoundSteps(expects_loss=False).feed("step=7", {"event": "step", "step": 7}) == ['slipway {"event":"step","step":7}']


def test_found_steps_are_those_of_another_host_until_one_of_this_host_prints_some() -> None:
    steps = FoundSteps(expects_loss=False)

    def said(step: int, host: str) -> list[str]:
        return steps.feed("[rank 0] step=%d" % step, {"event": "step", "step": step}, host)

    lines = [(1, "algo-2"), (2, "algo-2"), (2, "algo-3"), (1, ""), (2, ""), (3, "algo-2"), (3, "")]
    assert [said(step, host) != [] for step, host in lines] == [True, True, False, False, False, False, True]


def test_the_oom_counter_is_read_from_both_cgroup_versions() -> None:
    assert parse_oom_kills("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n") == 2
    assert parse_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n") == 1
    assert parse_oom_kills("") == 0


def test_a_stop_that_comes_after_the_end_of_a_launch_is_nothing(tmp_path: Path) -> None:
    supervisor = Supervisor(launched([sys.executable, "-c", ""], {}, tmp_path), tmp_path / "state", 1, lambda line, kind: None)
    assert supervisor.wait(lambda: None) == 0
    assert not (tmp_path / "state").exists()
    supervisor.stop()
    assert not supervisor.stopping
