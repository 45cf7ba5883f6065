"""Numbers of the progress lines in TensorBoard, MLflow and Weights & Biases, with the real packages where they are installed."""

import argparse
import os
import subprocess
import sys
import threading
import types
from pathlib import Path
from unittest import mock

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import slipway_trainer.__main__ as trainer_main  # noqa: E402
from slipway_trainer.exits import HAND_OVER, CheckpointFailed, InvalidRun  # noqa: E402
from slipway_trainer.trackers import PAUSE_SECONDS, SparingTracker, close_failed, log_all, open_trackers  # noqa: E402

STEP = {"step": 3, "loss": 2.5, "mfu": None, "tokensPerSecondPerGpu": 100.0}


def arguments(**asked: bool) -> argparse.Namespace:
    return argparse.Namespace(**{"tensorboard": False, "mlflow": False, "wandb": False} | asked)


def test_only_rank_0_writes_and_only_what_was_asked_for(tmp_path: Path) -> None:
    assert open_trackers(arguments(tensorboard=True, mlflow=True), "run-1", 1, {}) == []
    assert open_trackers(arguments(), "run-1", 0, {}) == []


def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed; npm run test:torch-2.5 has it")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trackers = open_trackers(arguments(tensorboard=True), "run-1", 0, {"SM_OUTPUT_DIR": str(tmp_path)})
    log_all(trackers, 3, STEP)
    trackers[0].close(0)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert sorted(events.Tags()["scalars"]) == ["loss", "tokensPerSecondPerGpu"]
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(3, 2.5)]


def test_mlflow_has_the_run_and_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed; npm run test:torch-2.5 has it")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = f"file://{tmp_path}/mlruns"
    mlflow.set_tracking_uri(uri)
    trackers = open_trackers(arguments(mlflow=True), "run-1", 0, {"MLFLOW_TRACKING_URI": uri})
    run_id = mlflow.active_run().info.run_id
    log_all(trackers, 3, STEP)
    trackers[0].close(0)
    run = mlflow.get_run(run_id)
    assert run.info.run_name == "run-1"
    assert run.data.metrics == {"loss": 2.5, "tokensPerSecondPerGpu": 100.0}


def test_fails_when_nobody_says_where_the_mlflow_server_is() -> None:
    with pytest.raises(InvalidRun, match="MLFLOW_TRACKING_URI is not set"):
        open_trackers(arguments(mlflow=True), "run-1", 0, {})


def test_wandb_goes_on_in_the_run_that_the_variables_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed; test_wandb_is_asked plays its calls")
    for name, value in {"MODE": "offline", "DIR": str(tmp_path), "PROJECT": "pretrain", "RUN_ID": "run-1", "NAME": "run-1"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    trackers = open_trackers(arguments(wandb=True), "run-1", 0, {"WANDB_PROJECT": "pretrain"})
    log_all(trackers, 3, STEP)
    trackers[0].close(0)
    (written,) = tmp_path.glob("wandb/offline-run-*/run-run-1.wandb")
    assert written.stat().st_size > 0


@pytest.mark.parametrize(
    ("code", "end"),
    [(0, [("finish", 0)]), (HAND_OVER, [("mark_preempting",), ("finish", 76)]), (71, [("finish", 71)])],
)
def test_wandb_is_asked_for_one_run_and_each_step_once(code: int, end: list, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple] = []

    class Run:
        def log(self, numbers: dict, step: int) -> None:
            calls.append(("log", numbers, step))

        def mark_preempting(self) -> None:
            calls.append(("mark_preempting",))

        def finish(self, exit_code: int) -> None:
            calls.append(("finish", exit_code))

    package = types.ModuleType("wandb")
    package.Settings = lambda **given: given  # type: ignore[attr-defined]
    package.init = lambda settings: calls.append(("init", settings)) or Run()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", package)
    trackers = open_trackers(arguments(wandb=True), "run-1", 0, {"WANDB_PROJECT": "pretrain"})
    log_all(trackers, 3, STEP)
    trackers[0].close(code)
    assert calls == [("init", {"console": "off"}), ("log", {"loss": 2.5, "tokensPerSecondPerGpu": 100.0}, 3), *end]


@pytest.mark.parametrize(("code", "status"), [(0, "FINISHED"), (HAND_OVER, "KILLED"), (70, "FAILED")])
def test_mlflow_ends_as_the_trainer_does(code: int, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    terminated: list[tuple] = []
    package = types.ModuleType("mlflow")
    run = types.SimpleNamespace(info=types.SimpleNamespace(run_id="r1"))
    package.start_run = lambda run_id, run_name: run  # type: ignore[attr-defined]
    package.tracking = types.SimpleNamespace(fluent=types.SimpleNamespace())  # type: ignore[attr-defined]
    package.end_run = ended.append  # type: ignore[attr-defined]
    client = types.SimpleNamespace(set_terminated=lambda *given: terminated.append(given))
    package.MlflowClient = lambda: client  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", package)
    (tracker,) = open_trackers(arguments(mlflow=True), "run-1", 0, {"MLFLOW_TRACKING_URI": "http://nowhere"})
    tracker.close(code)
    assert (ended, terminated) == ([status], [])
    close_failed([tracker], code)
    assert (ended, terminated) == ([status], [("r1", status)])


def test_mlflow_says_that_a_run_failed_when_its_process_is_gone(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed; npm run test:torch-2.5 has it")
    environ = {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_TRACKING_URI": f"file://{tmp_path}/mlruns"}
    script = (
        "from slipway_trainer.trackers import _MlFlow, close_failed\n"
        "tracker = _MlFlow({}, 'run-1')\n"
        "close_failed([tracker], 71)\n"
        "print('run', tracker._run_id)\n"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    told = subprocess.check_output([sys.executable, "-c", script], env={**os.environ, **environ, "PYTHONPATH": paths}, text=True)
    run_id = told.split("run ")[-1].strip()
    with mock.patch.dict(os.environ, environ):
        client = mlflow.MlflowClient(tracking_uri=environ["MLFLOW_TRACKING_URI"])
        assert client.get_run(run_id).info.status == "FAILED"


def test_an_error_does_not_wait_for_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slipway_trainer.trackers.CLOSE_SECONDS", 0.05)
    answered, asked, waited = threading.Event(), [], []

    class Silent:
        def close(self, code: int) -> None:
            asked.append(code)
            waited.append(answered.wait(60))

    close_failed([Silent()], 72)  # type: ignore[list-item]
    # It came back while the server was still silent.
    assert (asked, waited) == ([72], [])
    answered.set()


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        (0, [("close", 0)]),
        (HAND_OVER, [("close", HAND_OVER)]),
        (CheckpointFailed("no room"), [("fail", 71)]),
        (RuntimeError("CUDA error"), [("fail", 1)]),
    ],
)
def test_the_trainer_tells_its_trackers_how_it_ends(ending: "int | Exception", told: list, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple] = []

    class Trainer:
        def __init__(self, *_given: object) -> None:
            self.close = lambda code: calls.append(("close", code))
            self.fail = lambda code: calls.append(("fail", code))

        def resume(self) -> None:
            pass

        def train(self) -> int:
            if isinstance(ending, Exception):
                raise ending
            return ending

    arguments = types.SimpleNamespace(collective_timeout_seconds=1, steady_timeout_seconds=1, export_weights=False, export_adapter=False)
    settings = mock.MagicMock(arguments=arguments, weights=None, checkpoints=mock.MagicMock(uri=""))
    for name in ("World", "resolve_layout", "build_backend", "bind_to_gpu"):
        monkeypatch.setattr(trainer_main, name, mock.MagicMock())
    monkeypatch.setattr(trainer_main, "read_settings", lambda words: settings)
    monkeypatch.setattr(trainer_main, "Trainer", Trainer)
    try:
        assert trainer_main.run([]) == ending
    except Exception as error:
        assert error is ending
    assert calls == told


def test_fails_when_nobody_says_which_project_of_wandb() -> None:
    with pytest.raises(InvalidRun, match="WANDB_PROJECT is not set"):
        open_trackers(arguments(wandb=True), "run-1", 0, {})


def test_fails_when_the_image_has_no_wandb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InvalidRun, match="the image must have the package"):
        open_trackers(arguments(wandb=True), "run-1", 0, {"WANDB_PROJECT": "pretrain"})


class _Unsteady:
    """A tracker whose server answers when `up` says so."""

    def __init__(self, up: "list[bool]", written: "list[int]") -> None:
        if not up[0]:
            raise ConnectionError("no route to the server\nsecond line")
        self._up, self._written = up, written

    def log(self, step: int, numbers: object) -> None:
        if not self._up[0]:
            raise ConnectionError("no route to the server")
        self._written.append(step)

    def close(self, code: int) -> None:
        if not self._up[0]:
            raise ConnectionError("no route to the server")


def test_a_server_that_is_away_does_not_end_training(capsys: pytest.CaptureFixture[str]) -> None:
    now, up, written = [0.0], [False], []  # type: list[float], list[bool], list[int]
    tracker = SparingTracker("MLflow", lambda: _Unsteady(up, written), clock=lambda: now[0])
    assert capsys.readouterr().out == (
        "MLflow could not be written: ConnectionError: no route to the server; training continues; next try in 10 minutes\n"
    )
    up[0] = True
    tracker.log(1, {})
    now[0] = PAUSE_SECONDS
    tracker.log(2, {})
    up[0] = False
    tracker.log(3, {})
    tracker.log(4, {})
    assert capsys.readouterr().out.count("could not be written") == 1
    up[0], now[0] = True, 2 * PAUSE_SECONDS
    tracker.log(5, {})
    assert written == [2, 5]
    up[0] = False
    tracker.close(0)
    assert capsys.readouterr().out == "MLflow could not be closed: ConnectionError: no route to the server\n"


def test_fails_when_the_image_lacks_the_package() -> None:
    def absent() -> SparingTracker:
        raise ImportError("No module named 'mlflow'")

    with pytest.raises(ImportError):
        SparingTracker("MLflow", absent)
