"""Whose progress the first host goes by."""

from slipway_driver.shared_progress import ProgressSource

STEP, PHASE = {"event": "step", "step": 3}, {"event": "phase", "name": "save"}


def test_own_progress_counts_and_late_steps_of_others_do_not() -> None:
    source = ProgressSource()
    told = [(STEP, ""), (STEP, "algo-2"), (PHASE, ""), (STEP, "")]
    assert [source.counts(*one) for one in told] == [True, False, True, True]


def test_steps_of_the_first_other_host_count_until_this_one_prints_some() -> None:
    source = ProgressSource()
    assert [source.counts(STEP, host) for host in ("algo-3", "algo-2", "algo-3", "", "algo-3")] == [True, False, True, True, False]


def test_of_other_hosts_steps_alone_count() -> None:
    source = ProgressSource()
    assert [source.counts(PHASE, "algo-2"), source.counts(STEP, "algo-2"), source.counts(PHASE, "algo-2")] == [False, True, False]
