"""The learning rate as a pure function of the step, so that a resumed run needs no scheduler state."""

import math


def warmup_steps(requested: int | None, steps: int) -> int:
    """Number of warm-up steps; by default 1 % of all steps."""
    return requested if requested is not None else max(1, steps // 100)


def learning_rate(step: int, steps: int, highest: float, warmup: int, kind: str, last_ratio: float, decay_share: float) -> float:
    """The learning rate of `step` (from 0) of `steps`: linear warm-up, then cosine, wsd (constant, then linear decay) or constant.

    wsd decays in the last `decay_share` of the steps, at least in one, and reaches the lowest rate in the last step.
    """
    if step < warmup:
        return highest * (step + 1) / warmup
    lowest = highest * last_ratio
    if kind == "constant":
        return highest
    if kind == "wsd":
        falling = max(1, round(steps * decay_share))
        done = min(1.0, max(0.0, (step + 1 - (steps - falling)) / falling))
        return highest + (lowest - highest) * done
    done = min(1.0, (step - warmup) / max(1, steps - warmup))
    return lowest + (highest - lowest) * 0.5 * (1.0 + math.cos(math.pi * done))
