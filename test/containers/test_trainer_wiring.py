"""Parts of the trainer that only matter on GPUs or over many steps, where the trainer uses them."""

from types import SimpleNamespace
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer import __main__ as trainer_main  # noqa: E402
from slipway_trainer import trainer as loop  # noqa: E402
from slipway_trainer.batches import Prefetch  # noqa: E402

STEPS = 3
#: Everything that a trainer is made of, except its loop.
PARTS = (
    "Batches", "training_folders", "report_data", "compiles", "expert_balance", "open_samples", "Prefetch", "Continuation", "warmup_steps",
    "Departure", "Tallies", "Saves", "open_trackers", "place_of", "StepResults", "ScheduledCollection", "watch_steps", "SlowHosts",
)  # fmt: skip


def loop_of(monkeypatch: pytest.MonkeyPatch, device: str) -> "tuple[list[tuple[str, int]], dict[str, mock.MagicMock]]":
    """What the loop of a trainer on `device` did in order, and the parts that it was made of."""
    done: list[tuple[str, int]] = []
    parts = {name: mock.MagicMock() for name in PARTS}
    for name, part in parts.items():
        monkeypatch.setattr(loop, name, part)
    monkeypatch.setattr(loop, "open_trace", lambda *_given: None)
    parts["ScheduledCollection"].return_value.after_step.side_effect = lambda step: done.append(("collect", step))
    parts["StepResults"].return_value.take.side_effect = lambda launched, *_given: done.append(("read", launched.step))
    parts["Saves"].return_value.newest_step = STEPS

    class Trainer(loop.Trainer):
        def _one_step(self) -> None:
            self.step += 1
            done.append(("launch", self.step))
            asked = SimpleNamespace(read=lambda: SimpleNamespace(requests=frozenset()))
            self._launched.append(loop.Launched(self.step, asked, 0.1, 0.0, 1.0))

        def _between_steps(self) -> None:
            pass

        def _evaluate_model(self) -> None:
            pass

    settings = mock.MagicMock()
    settings.training.steps, settings.arguments.eval_channel, settings.arguments.minimum_step_seconds = STEPS, "", 0.0
    trainer = Trainer(settings, mock.MagicMock(device=torch.device(device), rank=1), mock.MagicMock(), {})
    assert trainer.train() == 0
    return done, parts


def test_on_a_gpu_a_loss_is_read_after_the_next_step_was_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _parts = loop_of(monkeypatch, "cuda")
    said = [(what, step) for what, step in done if what != "collect"]
    assert said == [("launch", 1), ("launch", 2), ("read", 1), ("launch", 3), ("read", 2), ("read", 3)]


def test_on_a_cpu_a_loss_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _parts = loop_of(monkeypatch, "cpu")
    assert [(what, step) for what, step in done if what != "collect"] == [
        (what, step) for step in range(1, STEPS + 1) for what in ("launch", "read")
    ]


def test_garbage_is_collected_on_schedule_after_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _parts = loop_of(monkeypatch, "cpu")
    assert [step for what, step in done if what == "collect"] == [1, 2, 3]


@pytest.mark.parametrize(("device", "pinned"), [("cuda", True), ("cpu", False)])
def test_data_is_read_into_pinned_memory_only_for_a_gpu(monkeypatch: pytest.MonkeyPatch, device: str, pinned: bool) -> None:
    _done, parts = loop_of(monkeypatch, device)
    assert parts["Prefetch"].call_args.kwargs == {"pinned": pinned}


class Rows:
    """Rows of a micro-batch that say what was done with them. PyTorch pins no memory on a machine without an accelerator."""

    def __init__(self, key: "tuple[int, int]", *done: object) -> None:
        self.key, self.done = key, done

    def pin_memory(self) -> "Rows":
        return Rows(self.key, *self.done, "pinned")

    def to(self, device: object, non_blocking: bool) -> "Rows":
        return Rows(self.key, *self.done, (str(device), non_blocking))


@pytest.mark.parametrize(
    ("device", "pinned", "done"),
    [("cuda", True, ("pinned", ("cuda", True))), ("cuda", False, (("cuda", True),)), ("cpu", True, ("pinned",)), ("cpu", False, ())],
)
def test_a_micro_batch_is_copied_to_a_gpu_from_pinned_memory_without_waiting(device: str, pinned: bool, done: "tuple[object, ...]") -> None:
    batches = SimpleNamespace(micro_steps=2, numbers=lambda *key: key, rows=Rows, split=lambda rows: rows)
    data = Prefetch(batches, pinned=pinned)
    for key in ((0, 0), (0, 1), (1, 0)):
        found = data.micro_batch(*key, torch.device(device))
        assert (found.key, found.done) == (key, done)
    data.close()


def test_a_rank_is_bound_to_the_processors_of_its_gpu_before_there_are_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    addresses = [SimpleNamespace(pci_domain_id=0, pci_bus_id=bus, pci_device_id=0) for bus in (0x53, 0x64)]
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(addresses))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: addresses[index])
    monkeypatch.setattr(trainer_main, "bind_near", lambda address, _environ: done.append(address))
    for name in ("read_settings", "writes_beside", "SaverProcess", "resolve_layout", "build_backend", "channel_folder", "Trainer"):
        monkeypatch.setattr(trainer_main, name, mock.MagicMock())
    trainer_main.SaverProcess.start.side_effect = lambda: done.append("saver")
    trainer_main.Trainer.return_value.train.return_value = 75
    monkeypatch.setattr(trainer_main, "World", lambda *_given: done.append("world") or mock.MagicMock())
    assert trainer_main.run([]) == 75
    assert done == ["saver", "0000:64:00.0", "world"]
