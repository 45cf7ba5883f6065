"""One line of the numerics table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """The largest absolute difference that was measured, and the most that is allowed."""

    measured: float
    allowed: float

    @property
    def holds(self) -> bool:
        return self.measured <= self.allowed


@dataclass(frozen=True)
class Row:
    """One check. `figures`: by what differs (`logits`, `loss`, ...)."""

    section: str
    name: str
    figures: dict[str, Figure]

    @property
    def holds(self) -> bool:
        return all(figure.holds for figure in self.figures.values())
