"""Copies progress lines to TensorBoard, MLflow and Weights & Biases, on rank 0, on request."""

import argparse
import atexit
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from slipway_trainer.exits import HAND_OVER, InvalidRun

#: Time without calls after a failure of a tracker, because its own retries would delay every step.
PAUSE_SECONDS = 600.0
#: How long a failed trainer waits for its trackers.
CLOSE_SECONDS = 10.0


class _TensorBoard:
    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def close(self, code: int) -> None:
        self._writer.close()


class _MlFlow:
    """The server, the experiment and, if the service created one, the run come from MLFLOW_* variables."""

    def __init__(self, environ: Mapping[str, str], run_name: str) -> None:
        import mlflow

        self._mlflow, self._thread = mlflow, threading.get_ident()
        self._run_id = mlflow.start_run(run_id=environ.get("MLFLOW_RUN_ID"), run_name=run_name).info.run_id
        # At exit, MLflow marks an active run as finished, even after a failure, because other threads cannot end it.
        atexit.unregister(getattr(mlflow.tracking.fluent, "_safe_end_run", None))

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        self._mlflow.log_metrics(dict(numbers), step=step)

    def close(self, code: int) -> None:
        # After a hand-over, the next attempt continues in the same run.
        status = "FINISHED" if code == 0 else "KILLED" if code == HAND_OVER else "FAILED"
        if threading.get_ident() == self._thread:
            self._mlflow.end_run(status)
        else:
            # Other threads have no active run (measured with MLflow 3.17.2).
            self._mlflow.MlflowClient().set_terminated(self._run_id, status)


class _Wandb:
    """Project, server, key and id come from WANDB_* variables; a later attempt continues in the run of the previous one."""

    def __init__(self) -> None:
        import wandb

        # Its copy of the console would be a second log, because progress lines are already in the job's log.
        self._run = wandb.init(settings=wandb.Settings(console="off"))

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        # Weights & Biases ignores steps that a resumed run repeats, because steps must increase.
        self._run.log(dict(numbers), step=step)

    def close(self, code: int) -> None:
        if code == HAND_OVER:
            self._run.mark_preempting()
        self._run.finish(exit_code=code)


class SparingTracker:
    """A destination of the run's metrics whose failures do not end training: they are printed, and the tracker is retried after a pause.
    `open_tracker`: creates it; an ImportError in the first call is raised, because the image lacks the package."""

    def __init__(self, name: str, open_tracker: Callable[[], Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._open, self._clock = name, open_tracker, clock
        self._tracker: Any = None
        self._again_at = 0.0
        try:
            self._tracker = open_tracker()
        except ImportError:
            raise
        except Exception as error:
            self._pause(error)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Writes metrics of one step by name; does nothing during a pause."""
        if self._clock() < self._again_at:
            return
        try:
            self._tracker = self._tracker or self._open()
            self._tracker.log(step, numbers)
        except Exception as error:
            self._pause(error)

    def close(self, code: int) -> None:
        """Writes buffered metrics and ends the run with the exit code of the trainer."""
        try:
            if self._tracker:
                self._tracker.close(code)
        except Exception as error:
            print(f"{self._name} could not be closed: {_brief(error)}", flush=True)

    def _pause(self, error: Exception) -> None:
        self._again_at = self._clock() + PAUSE_SECONDS
        next_try = f"training continues; next try in {PAUSE_SECONDS / 60:.0f} minutes"
        print(f"{self._name} could not be written: {_brief(error)}; {next_try}", flush=True)


def _brief(error: Exception) -> str:
    """The error on one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def open_trackers(arguments: argparse.Namespace, run_id: str, rank: int, environ: Mapping[str, str]) -> list[SparingTracker]:
    """The trackers of this rank. Raises InvalidRun if the image lacks a package or the server is not configured."""
    if rank != 0:
        return []
    found: list[SparingTracker] = []
    try:
        if arguments.tensorboard:
            # SageMaker uploads this folder: the default of TensorBoardOutputConfig.LocalPath.
            folder = Path(environ.get("SM_OUTPUT_DIR", "/opt/ml/output")) / "tensorboard"
            found.append(SparingTracker("TensorBoard", lambda: _TensorBoard(folder)))
        if arguments.mlflow:
            if not environ.get("MLFLOW_TRACKING_URI"):
                raise InvalidRun("environment variable MLFLOW_TRACKING_URI is not set; code.arguments.mlflow needs a tracking server")
            found.append(SparingTracker("MLflow", lambda: _MlFlow(environ, run_id)))
        if arguments.wandb:
            if not environ.get("WANDB_PROJECT"):
                raise InvalidRun("environment variable WANDB_PROJECT is not set; set observability.wandb, which code.arguments.wandb needs")
            found.append(SparingTracker("Weights & Biases", _Wandb))
    except ImportError as error:
        option = "code.arguments.tensorboard, mlflow, wandb"
        raise InvalidRun(f"{option}: the image must have the package, got {error}; choose an image that has it (image.uri)") from error
    return found


def close_failed(trackers: list[SparingTracker], code: int) -> None:
    """Closes the trackers after an error. Limits the wait, because the other ranks and the next attempt wait as well."""
    closing = threading.Thread(target=lambda: [tracker.close(code) for tracker in trackers], daemon=True)
    closing.start()
    closing.join(CLOSE_SECONDS)


def log_all(trackers: list[SparingTracker], step: int, fields: Mapping[str, Any]) -> None:
    """Writes the fields whose values are numbers."""
    numbers = {name: float(value) for name, value in fields.items() if isinstance(value, (int, float)) and name != "step"}
    for tracker in trackers:
        tracker.log(step, numbers)
