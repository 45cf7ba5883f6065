"""The budget of restarts in place."""

from types import SimpleNamespace

import pytest

from slipway_driver.restart_policy import WINDOW_SECONDS, RestartBudget


def test_restarts_are_limited_within_an_hour_and_not_over_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("slipway_driver.restart_policy.time", SimpleNamespace(monotonic=lambda: now[0]))
    budget = RestartBudget(2)
    budget.take()
    now[0] = 600.0
    budget.take()
    assert budget.left() == 0
    now[0] = WINDOW_SECONDS + 1.0
    assert budget.left() == 1, "the first one is an hour ago"
    for _ in range(50):
        now[0] += WINDOW_SECONDS
        budget.take()
        assert budget.left() == 1


def test_no_restarts_means_none() -> None:
    assert RestartBudget(0).left() == 0
