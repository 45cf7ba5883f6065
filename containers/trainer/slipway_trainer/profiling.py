"""A trace of a few steps on rank 0 with PyTorch's profiler, on request. Errors are reported and do not end the run."""

import argparse
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from slipway_trainer import progress
from slipway_trainer.checkpoint.store import Store, open_store, write_object

TABLE_ROWS = 40


class StepTrace:
    """Traces `steps` steps of this process after the first `after` steps, the last of which is the profiler's warm-up."""

    def __init__(self, after: int, steps: int, device: torch.device, store: Store) -> None:
        self._device, self._store = device, store
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
        window = schedule(wait=max(0, after - 1), warmup=min(1, after), active=steps, repeat=1)
        self._profiler = profile(activities=activities, schedule=window, on_trace_ready=self._write, record_shapes=True)
        self._steps = steps
        self._step = 0
        self._profiler.start()

    def after_step(self, step: int) -> None:
        """Called after each step. Writes the trace after the last step of the window."""
        self._step = step
        self._profiler.step()

    def close(self) -> None:
        """Writes an incomplete trace if the run ends within the window."""
        self._profiler.stop()

    def _write(self, found: profile) -> None:
        name = f"rank-0-step-{self._step}"
        try:
            with tempfile.TemporaryDirectory() as folder:
                trace = Path(folder) / "trace.json.gz"
                found.export_chrome_trace(str(trace))
                write_object(self._store, f"{name}.json.gz", trace.read_bytes())
            table = found.key_averages().table(sort_by=f"self_{self._device.type}_time_total", row_limit=TABLE_ROWS)
            write_object(self._store, f"{name}.txt", table.encode())
        except Exception as error:  # Storage errors, a full disk, other PyTorch versions: the run must continue without a trace.
            progress.emit("profile", step=self._step, error=str(error))
        else:
            progress.emit("profile", step=self._step, steps=self._steps, uri=f"{self._store.uri}/{name}.json.gz")


def place_of(heartbeat_uri: str | None, attempt: int, environ: Mapping[str, str]) -> str:
    """`s3://.../runs/<team>/<run>/profile/a001` next to the heartbeat; under network isolation a folder that is uploaded at the end."""
    if heartbeat_uri:
        return f"{heartbeat_uri.rsplit('/', 1)[0]}/profile/a{attempt:03d}"
    return os.path.join(environ.get("SM_OUTPUT_DATA_DIR", "/opt/ml/output/data"), "profile")


def open_trace(arguments: argparse.Namespace, rank: int, device: torch.device, place: str) -> StepTrace | None:
    """The trace of this rank; None if it is not requested."""
    after, steps = arguments.profile_after_steps, arguments.profile_steps
    return StepTrace(after, steps, device, open_store(place)) if arguments.profile and rank == 0 else None
