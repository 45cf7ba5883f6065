"""A start on thousands of ranks: what grows with their number, seen by one of them."""

import json
import os
import pickle
import random
from datetime import timedelta
from pathlib import Path

import pytest

from forked import run_forked
from rank_world import trainer_job

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]

import torch.distributed as dist  # noqa: E402
from faked_ranks import faked_world  # noqa: E402
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from slipway_trainer.fsdp2 import FUNCTION, MODULE, Chunks, Fsdp2Backend, chunks_as_read  # noqa: E402
from slipway_trainer.host_groups import VARIABLE, connected_when_used, host_group  # noqa: E402
from slipway_trainer.layout import resolve_layout  # noqa: E402
from slipway_trainer.settings import resolve_settings  # noqa: E402

RANKS = 10_000


class Operations(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += 1
        return function(*args, **(kwargs or {}))


def operations_to_build(ranks: int) -> int:
    job = trainer_job(training={"globalBatchSize": ranks})
    settings = resolve_settings(job, job["arguments"], {})
    with faked_world(ranks), Operations() as operations:
        layout = resolve_layout(settings.parallel, ranks, settings.architecture, settings.training)
        Fsdp2Backend(settings, layout, torch.device("cpu"))
    return operations.count


def test_building_a_model_on_ten_thousand_ranks_takes_as_many_operations_as_on_two() -> None:
    assert operations_to_build(RANKS) <= operations_to_build(2) + 100


def test_chunks_are_those_of_pytorch() -> None:
    module = pytest.importorskip(MODULE)
    theirs = getattr(module, FUNCTION)
    seed = random.randrange(1 << 30)
    draws = random.Random(seed)
    for _ in range(300):
        shape = [draws.randint(1, 40) for _ in range(draws.randint(1, 3))]
        count, dim = draws.randint(1, 50), draws.randrange(len(shape))
        tensor = torch.arange(float(torch.Size(shape).numel())).view(shape)
        expected, found = theirs(tensor, count, dim), Chunks(tensor, count, dim)
        assert len(found) == len(expected) == count, seed
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True)), (seed, shape, count, dim)


def test_fsdp_reads_its_own_function_again_afterwards() -> None:
    module = pytest.importorskip(MODULE)
    before = getattr(module, FUNCTION)
    with pytest.raises(RuntimeError), chunks_as_read():
        assert getattr(module, FUNCTION) is Chunks
        raise RuntimeError
    assert getattr(module, FUNCTION) is before


#: One rank of a fake world: writes the plan of all that it has, and that of what it writes.
PLANS = """
import json, os, pickle, sys, torch, torch.distributed as dist
from pathlib import Path
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.testing._internal.distributed.fake_pg import FakeStore
from slipway_trainer.checkpoint.writing import own_part
from slipway_trainer.fsdp2 import Fsdp2Backend
from slipway_trainer.layout import resolve_layout
from slipway_trainer.settings import resolve_settings
job, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("fake", rank=rank, world_size=ranks, store=FakeStore())
settings = resolve_settings(job, job["arguments"], {})
layout = resolve_layout(settings.parallel, ranks, settings.architecture, settings.training)
state = Fsdp2Backend(settings, layout, torch.device("cpu")).state()
planner = DefaultSavePlanner()
planner.set_up_planner(state, None, False)
whole = planner.create_local_plan()
(folder / str(rank)).write_bytes(pickle.dumps((whole, own_part(whole, state))))
"""


LAYOUTS = {
    "sharded": (4, {}),
    "hybrid": (8, {"replicate_degree": 4}),
    "hybrid, uneven shards": (6, {"replicate_degree": 2}),
    "tensor parallel": (8, {"replicate_degree": 2, "tensor_parallel_degree": 2}),
    "expert parallel": (4, {"expert_parallel_degree": 2}),
    "expert parallel on all": (4, {"expert_parallel_degree": 4}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_replicas_write_each_shard_once_and_as_much_as_each_other(tmp_path: Path, layout: str) -> None:
    ranks, parameters = LAYOUTS[layout]
    model = {"experts": 4, "expertsPerToken": 2} if "expert_parallel_degree" in parameters else {}
    job = trainer_job(training={"globalBatchSize": 24}, parameters=parameters, model=model)
    # DTensor keeps what it has computed for one rank, so each has a process.
    (tmp_path / "plans.py").write_text(PLANS)
    codes = run_forked(tmp_path / "run", ranks, {}, [json.dumps(job), str(tmp_path)], script=str(tmp_path / "plans.py"))
    assert codes == [0] * ranks, (tmp_path / "run/0.err").read_text()
    whole, plans = zip(*(pickle.loads((tmp_path / str(rank)).read_bytes()) for rank in range(ranks)), strict=True)
    coordinator = DefaultSavePlanner()
    coordinator.set_up_planner({}, None, True)
    # It raises an error for a tensor with gaps or overlaps.
    coordinator.create_global_plan(list(plans))
    items = [[item.index for item in plan.items] for plan in plans]
    once = {index for plan in whole for index in (item.index for item in plan.items)}
    assert {index for plan in items for index in plan} == once
    # Tensor-parallel ranks also have equal norms, which DCP writes once.
    assert layout == "tensor parallel" or sum(map(len, items)) == len(once)
    sizes = [sum(item.tensor_data.chunk.sizes.numel() for item in plan.items) for plan in plans]
    assert max(sizes) <= 1.5 * min(sizes) or layout.startswith("expert"), sizes


@pytest.fixture
def one_of_many():
    """A rank whose peers have not started yet."""
    dist.init_process_group("fake", rank=3, world_size=RANKS, store=dist.HashStore())
    yield
    dist.destroy_process_group()


@pytest.mark.skipif(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 8), reason="PyTorch 2.8 and later have the option")
def test_a_host_group_is_there_before_its_ranks_are_connected(one_of_many: None) -> None:
    # Waiting for the addresses of the others would raise an error.
    assert dist.get_world_size(host_group(timedelta(seconds=2))) == RANKS


def test_the_variable_applies_to_host_groups_alone_and_the_run_file_s_value_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with connected_when_used():
        assert os.environ[VARIABLE] == "1"
    assert VARIABLE not in os.environ
    monkeypatch.setenv(VARIABLE, "0")
    with connected_when_used():
        assert os.environ[VARIABLE] == "0"
    assert os.environ[VARIABLE] == "0"
