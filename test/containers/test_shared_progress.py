"""Whose progress the first host goes by."""

import pytest

from slipway_driver.job_monitor import ProgressSource

STEP, PHASE = {"event": "step", "step": 3}, {"event": "phase", "name": "save"}


@pytest.mark.parametrize("first", ["algo-1", "algo-4"])
def test_all_progress_of_rank_0_counts_and_late_steps_of_other_hosts_do_not(first: str) -> None:
    source = ProgressSource(first)
    told = [(STEP, first), (STEP, "algo-2"), (PHASE, first), (STEP, first)]
    assert [source.counts(*one) for one in told] == [True, False, True, True]
    assert source.is_own


def test_steps_of_the_first_other_host_count_until_that_of_rank_0_prints_some() -> None:
    source = ProgressSource("algo-1")
    assert [source.counts(STEP, host) for host in ("algo-3", "algo-2", "algo-3", "algo-1", "algo-3")] == [True, False, True, True, False]


def test_of_other_hosts_steps_alone_count() -> None:
    source = ProgressSource("algo-1")
    assert [source.counts(PHASE, "algo-2"), source.counts(STEP, "algo-2"), source.counts(PHASE, "algo-2")] == [False, True, False]
    assert not source.is_own
