"""Which run of a sweep is given up: the rule of `slipway launch --matrix --stop-when`."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import UsageError

#: What a rule may look at, and which end of it is the better one.
_METRICS = {"loss": min, "goodput": max, "spendUsd": min}
_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_RULE = re.compile(
    rf"\s*(\w+)\s*([<>])\s*(?:(best)(?:\s*([*+-])\s*({_NUMBER}))?|({_NUMBER}))(?:\s+after\s+(\d+)\s+steps?)?\s*\Z", re.ASCII
)
#: Losses go up and down from one step to the next: a run is judged by the median of its newest observations.
_MEDIAN_OF = 3

#: Step and value of a run at one observation.
Sample = tuple[float, float]


@dataclass(frozen=True)
class StopRule:
    """`loss > best * 1.1 after 500 steps`; with an operator the bound is the best run's value at the same step, times or plus `value`."""

    text: str
    metric: str
    is_above: bool
    operator: str | None
    value: float
    after_steps: int


def parse_stop_rule(text: str) -> StopRule:
    """Raises UsageError for a text that is no rule."""
    found = _RULE.match(text)
    if found is None or found[1] not in _METRICS:
        raise UsageError(
            f"stop_when: must compare loss, goodput or spendUsd with a number or with best, got {text}; "
            'write stop_when="loss > best * 1.1 after 500 steps"'
        )
    metric, sign, best, operator, by, value, steps = found.groups()
    bound = float(by or 1) if best else float(value)
    return StopRule(text, metric, sign == ">", (operator or "*") if best else None, bound, int(steps or 0))


def sample_of(rule: StopRule, status: Mapping[str, Any]) -> Sample | None:
    """The sample of a status; None while there is nothing to judge."""
    value = status[rule.metric]
    return None if status["step"] is None or value is None else (status["step"], value)


def is_loser(rule: StopRule, own: Sequence[Sample], others: Sequence[Sequence[Sample]]) -> bool:
    """Whether the rule stops a run. It is compared with the others at its own step, so that one that began later is not behind for that; a
    run that is the best of all is never stopped by its own value."""
    if not own or own[-1][0] < rule.after_steps:
        return False
    value = _value_at(own, own[-1][0])
    bound = None if value is None else _bound_at(rule, value, own[-1][0], others)
    return value is not None and bound is not None and (value > bound if rule.is_above else value < bound)


def _bound_at(rule: StopRule, own: float, step: float, others: Sequence[Sequence[Sample]]) -> float | None:
    if rule.operator is None:
        return rule.value
    rivals = [value for samples in others if (value := _value_at(samples, step)) is not None]
    if not rivals:
        return None
    best = _METRICS[rule.metric](rivals)
    if own == _METRICS[rule.metric](own, best):
        return None
    return {"*": best * rule.value, "+": best + rule.value, "-": best - rule.value}[rule.operator]


def _value_at(samples: Sequence[Sample], step: float) -> float | None:
    """Median of the newest samples up to a step; None for a run that was never seen there."""
    seen = [value for at, value in samples if at <= step][-_MEDIAN_OF:]
    return statistics.median(seen) if seen else None
