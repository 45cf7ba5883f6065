"""What a step costs beside forward, backward and optimizer: one small collective, collections on a schedule, ranks beside their GPUs."""

import gc
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from faked_ranks import faked_world  # noqa: E402

from slipway_trainer.__main__ import bind_near, parse_cpus, pci_address_of, processors_near  # noqa: E402
from slipway_trainer.checkpoint.shared_state import Staging  # noqa: E402
from slipway_trainer.garbage import ScheduledCollection  # noqa: E402
from slipway_trainer.optimizer import step_unless  # noqa: E402
from slipway_trainer.recompute import KEPT  # noqa: E402
from slipway_trainer.stalls import Standing  # noqa: E402
from slipway_trainer.step_clock import StepClock  # noqa: E402
from slipway_trainer.tally import Tallies, Tally  # noqa: E402


def test_selective_recomputation_keeps_attention_whichever_kernel_computes_it() -> None:
    """Any kernel that torch may choose: a new one would be computed twice without a word."""
    names = {name.split("::")[1] for name in torch._C._dispatch_get_all_op_names() if "_scaled_dot_product" in name}
    # Plain operations are recomputed from their products; quantized and MPS kernels do not train here.
    kernels = {name for name in names if not name.endswith(("_backward", "_math", "_for_mps")) and "." not in name}
    assert len(kernels) >= 4
    kept = {str(operation).split(".")[1 if str(operation).startswith("aten") else 0] for operation in KEPT}
    assert {name for name in kept if "attention" in name} == kernels | {"flex_attention"}


def test_a_step_is_agreed_on_in_one_collective() -> None:
    with faked_world(8) as traffic:
        tallies = Tallies(torch.device("cpu"), 8)
        asked = tallies.ask(torch.tensor(8.0), torch.tensor(0.5), {"save": True}, tokens=torch.tensor(96.0))
        assert [one.kind for one in traffic.sent] == ["all_reduce"]
        assert traffic.sent[0].bytes == 4 * 8
    # The fake group leaves the sum as it is: this rank's own.
    assert asked.read() == Tally(1.0, 0.5, frozenset({"save"}), tokens=96.0)
    assert not tallies.bad


@pytest.mark.parametrize(("loss", "norm"), [(float("nan"), 1.0), (1.0, float("inf")), (float("-inf"), 1.0)])
def test_a_step_that_is_not_sound_stops_all_updates_after_it(loss: float, norm: float) -> None:
    with faked_world(2):
        tallies = Tallies(torch.device("cpu"), 2)
        for values in ((1.0, 1.0), (loss, norm), (1.0, 1.0)):
            tallies.ask(torch.tensor(values[0]), torch.tensor(values[1]), {})
    assert float(tallies.bad) == 1.0


@pytest.mark.parametrize("fused", [True, False])
def test_an_update_that_must_not_be_made_changes_nothing(fused: bool) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.AdamW([weight], lr=0.1, fused=fused)
    weight.grad = torch.ones(3)
    step_unless(optimizer, torch.tensor(0.0))
    before = [weight.detach().clone(), *(value.clone() for value in optimizer.state[weight].values())]
    weight.grad = torch.full((3,), float("nan"))
    step_unless(optimizer, torch.tensor(1.0))
    after = [weight.detach(), *optimizer.state[weight].values()]
    assert all(torch.equal(first, second) for first, second in zip(before, after, strict=True))


class FakeMark:
    """A point of a stream that comes when the test says so."""

    def __init__(self) -> None:
        self.passed = False

    def query(self) -> bool:
        return self.passed


def test_the_state_is_that_of_the_last_update_that_has_ended() -> None:
    marks: list[FakeMark] = []

    def mark() -> FakeMark:
        marks.append(FakeMark())
        return marks[-1]

    standing = Standing(torch.device("cpu"), mark)
    assert standing.newest() is None
    for step in (5, 6, 7):
        with standing.update({"step": step}):
            pass
    marks[0].passed = True
    assert standing.newest() is None, "an update is being computed"
    marks[1].passed = True
    facts = standing.newest()
    assert facts == {"step": 5} and standing.still(facts)
    # The collective comes back while somebody copies the state of step 5: the update behind it begins.
    marks[2].passed = True
    assert not standing.still(facts)
    marks[3].passed = True
    assert standing.newest() == {"step": 6} and not standing.still(facts)


def test_a_state_is_not_asked_for_in_the_middle_of_an_update_of_the_host() -> None:
    standing = Standing(torch.device("cpu"))
    with standing.update({"step": 1}):
        assert standing.newest() is None
    assert standing.newest() == {"step": 1}


def test_the_collector_runs_on_schedule_only() -> None:
    collected: list[int] = []
    before = gc.isenabled()
    schedule = ScheduledCollection(steps_between=10)
    gc.callbacks.append(lambda phase, info: collected.append(info["generation"]) if phase == "start" else None)
    try:
        for step in range(1, 31):
            _cycles = [[] for _ in range(2000)]
            schedule.after_step(step)
        assert collected == [1, 1, 1]
    finally:
        gc.callbacks.pop()
        schedule.close()
    assert gc.isenabled() == before and gc.get_freeze_count() == 0


def test_lists_of_processors_are_read_as_the_kernel_writes_them() -> None:
    assert parse_cpus("0-2,8,10-11\n") == {0, 1, 2, 8, 10, 11}
    assert parse_cpus("\n") == set()


def machine(root: Path, node: str, cpus: str) -> Path:
    (root / "bus/pci/devices/0000:53:00.0").mkdir(parents=True)
    (root / "bus/pci/devices/0000:53:00.0/numa_node").write_text(node)
    (root / "devices/system/node/node1").mkdir(parents=True)
    (root / "devices/system/node/node1/cpulist").write_text(cpus)
    return root


def test_a_rank_runs_beside_its_gpu(tmp_path: Path) -> None:
    own = os.sched_getaffinity(0)
    first = min(own)
    root = machine(tmp_path, "1\n", f"{first},4095\n")
    address = pci_address_of(SimpleNamespace(pci_domain_id=0, pci_bus_id=0x53, pci_device_id=0))
    assert address == "0000:53:00.0" and processors_near(address, root) == {first, 4095}
    try:
        assert bind_near(address, {"SLIPWAY_NUMA_BINDING": "off"}, root) == set()
        assert os.sched_getaffinity(0) == own
        assert bind_near(address, {}, root) == {first}
        assert os.sched_getaffinity(0) == {first}
    finally:
        os.sched_setaffinity(0, own)


def test_a_machine_that_says_nothing_binds_nothing(tmp_path: Path) -> None:
    assert processors_near("0000:53:00.0", machine(tmp_path, "-1\n", "0\n")) == set()
    assert processors_near("", tmp_path) == set()
    assert pci_address_of(SimpleNamespace(name="NVIDIA")) == ""


def test_the_buffers_of_saves_are_made_before_the_first_one() -> None:
    made_for: list[list[str]] = []
    staging = Staging(False, os.memfd_create("test"), lambda places, state: made_for.append([place.name for place in places]))
    state = {"a": torch.ones(3), "b": torch.zeros(2, 2)}
    staging.prepare(state)
    made = {name: tensor.data_ptr() for name, tensor in staging._buffers.items()}
    found = staging.copy(state)
    assert {name: tensor.data_ptr() for name, tensor in found.items()} == made
    assert made_for == [["a", "b"]]
    assert torch.equal(found["a"], state["a"])


def test_a_step_lasts_from_the_end_of_the_one_before_without_saves_and_evaluations() -> None:
    now = [0.0]
    clock = StepClock(lambda: now[0])
    clock.begin()
    now[0] = 3.0
    with clock.stopped():
        now[0] = 10.0
    now[0] = 12.0
    assert clock.lap() == 5.0
    now[0] = 13.5
    assert clock.lap() == 1.5
