"""What FSDP2 really keeps and sends, on one rank of a world in which nothing is sent (torch's `fake` process group)."""

from collections.abc import Callable

import pytest

from rank_world import trainer_job

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from faked_ranks import faked_world  # noqa: E402
from torch.distributed.fsdp import FSDPModule  # noqa: E402

from slipway_trainer.batches import MicroBatch  # noqa: E402
from slipway_trainer.fsdp2 import Fsdp2Backend, not_compiled  # noqa: E402
from slipway_trainer.layout import resolve_layout  # noqa: E402
from slipway_trainer.settings import resolve_settings  # noqa: E402


def backend_of(ranks: int, **changes: object) -> Fsdp2Backend:
    job = trainer_job(**changes)
    settings = resolve_settings(job, job["arguments"], {})
    layout = resolve_layout(settings.parallel, ranks, settings.architecture, settings.training)
    backend = Fsdp2Backend(settings, layout, torch.device("cpu"))
    backend.begin()
    return backend


def micro_steps(backend: Fsdp2Backend, count: int) -> None:
    tokens = torch.randint(0, 257, (1, 33))
    for number in range(count):
        backend.forward_backward(MicroBatch(tokens[:, :-1], tokens[:, 1:]), 1.0 / count, last=number == count - 1)


def held_between_micro_steps(**parameters: object) -> tuple[int, int]:
    """(gradient elements, gathered parameter elements) that rank 0 of 4 holds after the first of two micro-steps."""
    with faked_world(4):
        backend = backend_of(4, training={"globalBatchSize": 8, "precision": "bf16"}, parameters=parameters)
        tokens = torch.randint(0, 257, (1, 33))
        backend.forward_backward(MicroBatch(tokens[:, :-1], tokens[:, 1:]), 0.5, last=False)
        gradients = gathered = 0
        for module in backend.model.modules():
            state = getattr(module, "_get_fsdp_state", lambda: None)()
            for group in [state._fsdp_param_group] if state is not None and state._fsdp_param_group else []:
                for parameter in group.fsdp_params:
                    whole = parameter.unsharded_accumulated_grad
                    sharded = parameter.sharded_param.grad
                    gradients += whole.numel() if whole is not None else sharded.to_local().numel() if sharded is not None else 0
                    gathered += parameter._unsharded_param.numel() if parameter.sharded_state.name == "UNSHARDED" else 0
        return gradients, gathered


def parameters_of(ranks: int) -> tuple[int, int]:
    """(elements of the whole model, elements on rank 0)."""
    with faked_world(ranks):
        parameters = list(backend_of(ranks).model.parameters())
        return sum(parameter.numel() for parameter in parameters), sum(parameter.to_local().numel() for parameter in parameters)


@pytest.mark.parametrize(
    ("ranks", "precision", "compiled", "wraps"),
    [(1, "fp32", False, False), (1, "fp32", True, False), (1, "bf16", True, False), (1, "bf16", False, True), (2, "fp32", True, True)],
)
def test_one_rank_is_wrapped_only_to_compute_in_another_precision_without_being_compiled(
    ranks: int, precision: str, compiled: bool, wraps: bool
) -> None:
    with faked_world(ranks):
        model = backend_of(ranks, training={"precision": precision}, parameters={"compile": compiled}).model
    assert {isinstance(module, FSDPModule) for module in (model, *model.all_blocks())} == {wraps}


def test_gradients_are_scattered_after_every_micro_step_unless_no_sync_asks_otherwise() -> None:
    whole, shard = parameters_of(4)
    assert held_between_micro_steps() == (shard, 0)
    gradients, gathered = held_between_micro_steps(no_sync=True)
    assert gradients == whole and gathered == whole


def test_replicas_are_asked_once_a_step() -> None:
    with faked_world(4) as traffic:
        backend = backend_of(4, training={"globalBatchSize": 8}, parameters={"replicate_degree": 2})
        traffic.clear()
        micro_steps(backend, 2)
        # Two blocks and the rest: scattered twice, reduced over the replicas once.
        assert traffic.count("reduce_scatter") == 2 * 3
        assert traffic.count("all_reduce") == 3


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_rotary_tables_reach_the_blocks_in_float32(precision: str) -> None:
    with faked_world(2):
        backend = backend_of(2, training={"precision": precision})
        seen = set()
        for block in backend.model.blocks.values():
            block.attention.register_forward_pre_hook(lambda _module, inputs: seen.add((inputs[0].dtype, inputs[1].dtype, inputs[2].dtype)))
        micro_steps(backend, 1)
        assert seen == {(torch.bfloat16 if precision == "bf16" else torch.float32, torch.float32, torch.float32)}


def test_blocks_run_as_they_are_written_and_what_is_compiled_within_them_stays_so() -> None:
    calls: list[str] = []

    def counting(name: str) -> Callable[..., Callable[..., object]]:
        def backend(graph: torch.fx.GraphModule, _inputs: object) -> Callable[..., object]:
            return lambda *inputs: (calls.append(name), graph(*inputs))[1]

        return backend

    kernel = torch.compile(torch.sin, backend=counting("kernel"))

    class Block(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return kernel(x) + 1

    block, x = Block(), torch.ones(3)
    block.compile(backend=counting("block"))
    wanted = block(x)
    assert calls == ["block"]
    with not_compiled([block]):
        assert torch.equal(block(x), wanted)
    assert calls == ["block", "kernel"]
    block(x)
    assert calls == ["block", "kernel", "block"]
