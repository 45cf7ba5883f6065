"""Every shipped run file of the built-in trainer as one rank of its whole fleet: nothing is sent and no memory is taken, but every
collective is called. Their number and size are those that the planner counts.

Layers are cut to two, because what is sent of each is the same; widths, layout, precision and recomputation are the run's own.
test/planner/builtin-jobs.test.ts writes the fixture.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from fake_world import REPOSITORY

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from faked_ranks import Traffic, faked_world  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily  # noqa: E402
from torch.distributed.device_mesh import DeviceMesh  # noqa: E402
from torch.nn.attention import bias  # noqa: E402

from slipway_trainer import fsdp2  # noqa: E402
from slipway_trainer.layout import Layout, resolve_layout  # noqa: E402
from slipway_trainer.settings import RunSettings, resolve_settings  # noqa: E402

LAYERS = 2
JOBS = json.loads(Path(REPOSITORY, "test/fixtures/builtin-jobs.json").read_text())
#: Other ways to run one of the files: (what changes in `distribution.parameters`, micro-batches of a step).
VARIANTS = [
    ("llama3-8b-fsdp.yaml", {"shard_degree": 8, "no_sync": True}, 2),
    ("llama3-70b-fsdp.yaml", {"shard_degree": 256}, 1),
]


def really(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose tensors have values: meshes are tables of ranks that are looked up."""

    def called(*arguments: Any, **options: Any) -> Any:
        with unset_fake_temporarily():
            return function(*arguments, **options)

    return called


@contextmanager
def fleet(settings: RunSettings, layout: Layout, ranks: int) -> Iterator[tuple[fsdp2.Fsdp2Backend, Traffic]]:
    """Rank 0 with its part of the model as tensors that have shapes and no memory."""
    with pytest.MonkeyPatch.context() as patch, faked_world(ranks) as traffic, ExitStack() as modes:
        for owner, name in ((DeviceMesh, "__init__"), (DeviceMesh, "__getitem__"), (fsdp2, "build_mesh"), (fsdp2, "expert_parallel")):
            patch.setattr(owner, name, really(getattr(owner, name)))
        patch.setattr(DeviceMesh, "_concatenate", staticmethod(really(DeviceMesh._concatenate)))
        # A mask of its own class cannot be made of tensors without values.
        patch.setattr(bias, "causal_lower_right", lambda rows, columns: torch.ones((rows, columns), dtype=torch.bool))
        # First values would be numbers that nobody reads.
        patch.setattr(fsdp2, "initialise", lambda *_: None)
        modes.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        yield fsdp2.Fsdp2Backend(settings, layout, torch.device("cpu")), traffic


def one_step(job: dict[str, Any], ranks: int, micro_steps: int) -> tuple[fsdp2.Fsdp2Backend, Traffic]:
    """What rank 0 sends in one step of `micro_steps`."""
    job = job | {"model": job["model"] | {"layers": LAYERS}}
    job["distribution"] = job["distribution"] | {"parameters": job["distribution"]["parameters"] | {"compile": False}}
    settings = resolve_settings(job, job["arguments"], {})
    layout = resolve_layout(settings.parallel, ranks, settings.architecture, settings.training)
    length = settings.training.sequence_length
    with fleet(settings, layout, ranks) as (backend, traffic):
        traffic.clear()
        tokens = torch.zeros((settings.training.micro_batch_size, length + 1), dtype=torch.int64)
        for number in range(micro_steps):
            backend.forward_backward(tokens[:, :-1], tokens[:, 1:], 1.0 / micro_steps, last=number == micro_steps - 1)
        return backend, traffic


def block_parameters(backend: fsdp2.Fsdp2Backend) -> int:
    return sum(shape.numel() for name, shape in backend.shapes.items() if name.startswith("blocks.0."))


@pytest.mark.parametrize("entry", [job for job in JOBS if job["ranks"] > 8], ids=lambda entry: entry["file"])
def test_collectives_of_a_step_are_those_that_the_planner_counts(entry: dict[str, Any]) -> None:
    planned, training, ranks = entry["traffic"], entry["job"]["training"], entry["ranks"]
    parameters = entry["job"]["distribution"]["parameters"]
    data_ranks = ranks // (parameters.get("tensor_parallel_degree", 1) * parameters.get("context_parallel_degree", 1))
    micro_steps = training["globalBatchSize"] // (training.get("microBatchSize", 1) * data_ranks)
    backend, traffic = one_step(entry["job"], ranks, min(2, micro_steps))
    each = planned["gathers"] // micro_steps
    done = min(2, micro_steps)
    # Blocks, and embedding, last norm and head together, which stay gathered until the backward pass is over.
    assert traffic.count("all_gather") == done * (each * LAYERS + 1)
    assert traffic.count("reduce_scatter") == done * (LAYERS + 1)
    assert traffic.count("all_reduce") == planned["replicaSums"] * (LAYERS + 1)
    # The planner leaves norms out.
    gathered = max(one.bytes for one in traffic.sent if one.kind == "all_gather" and one.bytes <= 2 * block_parameters(backend) * 1.01)
    assert gathered == pytest.approx(planned["gatheredBytes"], rel=1e-3)
    scattered = [one.bytes for one in traffic.sent if one.kind == "reduce_scatter"]
    assert min(scattered) == pytest.approx(4 * planned["parameters"], rel=1e-3), "gradients are summed in float32"


@pytest.mark.parametrize(("file", "parameters", "micro_steps"), VARIANTS, ids=[str(variant[1]) for variant in VARIANTS])
def test_variants_send_what_their_layout_says(file: str, parameters: dict[str, Any], micro_steps: int) -> None:
    entry = next(job for job in JOBS if job["file"] == file)
    job = entry["job"] | {"distribution": entry["job"]["distribution"] | {"parameters": parameters}}
    _backend, traffic = one_step(job, entry["ranks"], micro_steps)
    groups = LAYERS + 1
    if parameters.get("no_sync"):
        # Parameters stay gathered from a backward pass to the next forward pass; those of the root for the whole step.
        assert traffic.count("all_gather") == LAYERS * (micro_steps + 1) + 1
        assert traffic.count("reduce_scatter") == groups
    else:
        assert traffic.count("all_gather") == micro_steps * (2 * LAYERS + 1)
        assert traffic.count("reduce_scatter") == micro_steps * groups
    shards = {one.ranks for one in traffic.sent if one.kind == "reduce_scatter"}
    assert shards == {parameters["shard_degree"]}
