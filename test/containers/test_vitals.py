"""Loss, speed and slow hosts in the heartbeat."""

from slipway_driver.job_monitor import Vitals


def steps(vitals: Vitals, first: int, count: int, seconds: float, at: float) -> float:
    for step in range(first, first + count):
        at += seconds
        vitals.feed({"event": "step", "step": step, "loss": 2.5}, at)
    return at


def test_speed_is_compared_with_the_hour_before() -> None:
    vitals = Vitals(["algo-1"], 0)
    at = steps(vitals, 1, 90, 10.0, 0.0)
    assert vitals.facts()["stepsPerHour"] is None, "a quarter of an hour says nothing about what is usual"
    at = steps(vitals, 91, 200, 10.0, at)
    assert vitals.facts()["usualStepsPerHour"] == 360.0
    steps(vitals, 291, 40, 20.0, at)
    assert vitals.facts()["stepsPerHour"] < 0.7 * vitals.facts()["usualStepsPerHour"]


def test_the_first_step_is_remembered() -> None:
    vitals = Vitals(["algo-1"], 0)
    assert vitals.facts()["firstStep"] is None
    steps(vitals, 21, 5, 10.0, 0.0)
    assert vitals.facts()["firstStep"] == 21


def test_declared_phases_do_not_count_as_slow() -> None:
    vitals = Vitals(["algo-1"], 0)
    at = steps(vitals, 1, 200, 10.0, 0.0)
    for round_ in range(6):
        vitals.feed({"event": "phase", "name": "eval", "state": "begin"}, at)
        vitals.feed({"event": "phase", "name": "eval", "state": "end"}, at + 400.0)
        at = steps(vitals, 201 + 30 * round_, 30, 10.0, at + 400.0)
    assert vitals.facts()["stepsPerHour"] > 0.95 * vitals.facts()["usualStepsPerHour"]


def test_a_loss_that_is_no_number_never_reaches_the_heartbeat() -> None:
    vitals = Vitals(["algo-1"], 2)
    vitals.feed({"event": "step", "step": 1, "loss": 3.5}, 1.0)
    vitals.feed({"event": "step", "step": 2, "loss": float("nan")}, 2.0)
    assert vitals.facts()["loss"] == 3.5
    assert vitals.facts()["restarts"] == 2


def test_a_slow_host_is_named_until_it_recovers() -> None:
    vitals = Vitals(["algo-1", "algo-7"], 0)
    vitals.feed({"event": "slow-host", "host": 1, "what": "compute", "ratio": 1.4}, 1.0)
    assert vitals.facts()["slowHost"] == {"host": "algo-7", "what": "compute", "ratio": 1.4}
    vitals.feed({"event": "slow-host", "host": None}, 2.0)
    assert vitals.facts()["slowHost"] is None


def test_a_slow_network_is_said_without_a_host() -> None:
    vitals = Vitals(["algo-1", "algo-7", "algo-8"], 0)
    vitals.feed({"event": "slow-host", "hosts": [1, 2], "what": "network", "ratio": 2.0}, 1.0)
    assert vitals.facts()["slowHost"] == {"host": "", "what": "network between algo-7 and algo-8", "ratio": 2.0}
    vitals.feed({"event": "slow-host", "hosts": [], "what": "all-reduce", "ratio": 2.0}, 2.0)
    assert vitals.facts()["slowHost"] == {"host": "", "what": "all-reduce", "ratio": 2.0}
    vitals.feed({"event": "slow-host", "hosts": [{}, 9], "what": "network"}, 3.0)
    assert vitals.facts()["slowHost"]["what"] == "network"
