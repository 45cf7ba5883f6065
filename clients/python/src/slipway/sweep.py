"""Several runs of one file that differ in some options: `slipway launch --matrix`."""

from __future__ import annotations

import datetime
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ._display import comparison_rows, progress_line, table_html
from ._stop_rule import Sample, StopRule, is_loser, sample_of
from ._waiting import ENDED, PATIENCE
from .errors import ServiceError, UsageError
from .types import MatrixRunsItem, Status

if TYPE_CHECKING:
    from .run import Run

#: More would be a mistake more often than a wish.
_MAX_RUNS = 32
_HEAD = ("run", "state", "step", "loss", "tokens/s/GPU", "goodput", "USD", "with")


def cells_of(matrix: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Every combination of the values of each path. Raises UsageError for a path without two or more different values, and for too many."""
    axes = [_axis(path, values) for path, values in matrix.items()]
    cells = [dict(zip(matrix, values, strict=True)) for values in itertools.product(*axes)]
    if not matrix or len(cells) > _MAX_RUNS:
        raise UsageError(f"matrix: must give 2 to {_MAX_RUNS} runs, got {len(cells) if matrix else 0}; name other values")
    return cells


def _axis(path: str, values: object) -> list[object]:
    must = "two or more different values for a path"
    try:
        found = [] if isinstance(values, (str, Mapping)) else list(cast(Iterable[object], values))
        if len({json.dumps(value) for value in found}) == len(found) >= 2:
            return found
    except TypeError as error:
        # What is no list, and numbers of numpy's.
        must = f"{must} in plain types ({error})"
    raise UsageError(f'matrix: must have {must}, got {path}: {values}; write matrix={{"training.microBatchSize": [1, 2, 4]}}')


def launch_all(
    group: str, sets: Sequence[tuple[str, Mapping[str, object]]], launch: Callable[[Mapping[str, object]], Run]
) -> list[tuple[str, Run]]:
    """Launches each; where one is refused or Ctrl-C comes, those that are launched are named before the error is raised."""
    launched: list[tuple[str, Run]] = []
    try:
        for label, options in sets:
            launched.append((label, launch(options)))
    except BaseException:
        if launched:
            names = ", ".join(run.id for _, run in launched)
            print(f"{group}: {len(launched)} of {len(sets)} runs are launched and go on: {names}", file=sys.stderr)
        raise
    return launched


def label_of(cell: Mapping[str, object]) -> str:
    """What tells a run from the others, as the command line writes it."""
    return " ".join(f"{path}={value if isinstance(value, str) else json.dumps(value)}" for path, value in cell.items())


def matrix_id() -> str:
    """Value of the tag `matrix` of its runs, by the time in UTC."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("matrix-%y%m%d%H%M%S")


class Sweep:
    """The runs of a sweep. Made by Environment.sweep; `id` is the value of their tag `matrix`."""

    def __init__(self, id: str, runs: Sequence[tuple[str, Run]], rule: StopRule | None) -> None:
        self.id = id
        self.runs = [run for _, run in runs]
        self._labels = {run.id: label for label, run in runs}
        self._rule = rule
        self._samples: dict[str, list[Sample]] = {run.id: [] for run in self.runs}
        self._stopped: set[str] = set()

    def __repr__(self) -> str:
        return f"Sweep('{self.id}', {len(self.runs)} runs)"

    def _repr_html_(self) -> str:
        return table_html(_HEAD, comparison_rows(self.results()))

    def __str__(self) -> str:
        from ._display import text_table

        return text_table(_HEAD, comparison_rows(self.results()))

    def wait(self, progress: bool = True, poll: float = 10) -> list[MatrixRunsItem]:
        """Waits until all runs have ended and returns their results; stops those that `stop_when` gives up, which may be resumed.

        A line for each change goes to stderr. `poll` is in seconds. Interrupting it stops no run, and no loser any more.
        """
        printed: dict[str, str] = {}
        failures = dict.fromkeys(self._labels, 0)
        ended: dict[str, Status] = {}
        while len(ended) < len(self.runs):
            for run in (each for each in self.runs if each.id not in ended):
                status = self._status(run, failures)
                if status is None:
                    continue
                line = progress_line(status)
                if progress and printed.get(run.id) != line:
                    print(line, file=sys.stderr)
                printed[run.id] = line
                self._apply_rule(run, status, progress)
                if status["state"] in ENDED:
                    ended[run.id] = status
            if len(ended) < len(self.runs):
                time.sleep(poll)
        return self._rows(ended)

    def results(self) -> list[MatrixRunsItem]:
        """How the runs stand now, side by side: with `stop_when` the lowest loss first, else the fastest."""
        return self._rows({run.id: run.status() for run in self.runs})

    def _status(self, run: Run, failures: dict[str, int]) -> Status | None:
        try:
            status = run.status()
        except ServiceError:
            failures[run.id] += 1
            if failures[run.id] >= PATIENCE:
                raise
            return None
        failures[run.id] = 0
        return status

    def _apply_rule(self, run: Run, status: Status, progress: bool) -> None:
        if self._rule is None:
            return
        own = self._samples[run.id]
        sample = sample_of(self._rule, status)
        # The same heartbeat is seen at several observations; after a restart steps are made again.
        if sample is not None and (not own or sample[0] != own[-1][0]):
            own.append(sample)
        if status["state"] in ENDED or status["desiredState"] == "stop" or run.id in self._stopped:
            return
        others = [samples for id, samples in self._samples.items() if id != run.id]
        if not is_loser(self._rule, own, others):
            return
        try:
            run._stop(f"--stop-when {self._rule.text}"[:512])
        except ServiceError:
            # It is asked again at the next observation.
            return
        self._stopped.add(run.id)
        if progress:
            print(f"{run.id}: stopped early: {self._rule.text}; Run.resume continues it", file=sys.stderr)

    def _rows(self, statuses: Mapping[str, Status]) -> list[MatrixRunsItem]:
        rows = [self._row(run, statuses[run.id]) for run in self.runs]
        if self._rule is None:
            return sorted(rows, key=lambda row: -(row["tokensPerSecondPerGpu"] or 0))
        return sorted(rows, key=lambda row: (0 if row["state"] == "completed" else 1e9) + (1e8 if row["loss"] is None else row["loss"]))

    def _row(self, run: Run, status: Status) -> MatrixRunsItem:
        steps = run._steps()
        losses, speeds = (_numbers(steps, name) for name in ("loss", "tokensPerSecondPerGpu"))
        row: dict[str, Any] = {
            "label": self._labels[run.id],
            "runId": run.id,
            **{key: status[key] for key in ("state", "step", "goodput", "spendUsd")},
            "loss": losses[-1] if losses else None,
            "tokensPerSecondPerGpu": statistics.median(speeds) if speeds else None,
            **({} if self._rule is None else {"stoppedEarly": run.id in self._stopped}),
        }
        return cast(MatrixRunsItem, row)


def _numbers(steps: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [step[name] for step in steps if isinstance(step.get(name), (int, float)) and not isinstance(step[name], bool)]
