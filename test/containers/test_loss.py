"""The loss in pieces: the same value and gradients as in one, with each product computed once."""

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import torch.distributed as dist  # noqa: E402
from faked_ranks import faked_world  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import DTensor, Shard  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from slipway_trainer.loss import VocabularyLoss, chunks_for, loss_over  # noqa: E402
from slipway_trainer.tensor_parallel import TensorParallel  # noqa: E402

_PRODUCTS = (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.addmm_, torch.ops.aten.bmm)


class Products(TorchDispatchMode):
    """Counts matrix products."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += function.overloadpacket in _PRODUCTS
        return function(*args, **(kwargs or {}))


def run(chunks: int, z_weight: float, dtype: torch.dtype = torch.float32, share: float = 1.0) -> tuple:
    """(loss, gradient of the hidden states, gradient of the head, matrix products)."""
    generator = torch.Generator().manual_seed(5)
    head = torch.nn.Linear(16, 50, bias=False)
    with torch.no_grad():
        head.weight.normal_(generator=generator)
    head.to(dtype)
    x = torch.randn(2, 10, 16, generator=generator).to(dtype).requires_grad_()
    targets = torch.randint(0, 50, (2, 10), generator=generator)
    with Products() as products:
        loss = loss_over(targets, chunks, z_weight)(head, x)
        (loss * share).backward()
    return loss.detach(), x.grad, head.weight.grad, products.count


@pytest.mark.parametrize("z_weight", [0.0, 1e-3])
@pytest.mark.parametrize("chunks", [2, 3, 5])
def test_pieces_give_the_value_and_gradients_of_the_whole(chunks: int, z_weight: float) -> None:
    whole, pieces = run(1, z_weight, share=0.25), run(chunks, z_weight, share=0.25)
    for expected, found in zip(whole[:3], pieces[:3], strict=True):
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_bf16_heads_keep_their_gradients_in_bf16_and_the_loss_in_fp32() -> None:
    loss, to_x, to_weight, _ = run(5, 0.0, torch.bfloat16)
    assert (loss.dtype, to_x.dtype, to_weight.dtype) == (torch.float32, torch.bfloat16, torch.bfloat16)
    torch.testing.assert_close(to_weight.float(), run(1, 0.0)[2], atol=0.02, rtol=0.1)


def test_pieces_work_under_autocast() -> None:
    generator = torch.Generator().manual_seed(5)
    head, x = torch.nn.Linear(16, 50, bias=False), torch.randn(2, 10, 16, generator=generator).requires_grad_()
    targets = torch.randint(0, 50, (2, 10), generator=generator)
    with torch.autocast("cpu", torch.bfloat16):
        losses = [loss_over(targets, chunks, 0.0)(head, x) for chunks in (1, 4)]
    for loss in losses:
        loss.backward()
    assert losses[1].item() == pytest.approx(losses[0].item(), abs=0.02)
    assert head.weight.grad.dtype == x.grad.dtype == torch.float32


def test_no_product_of_the_head_is_computed_twice() -> None:
    assert run(5, 0.0)[3] == 5 * 3


def test_pieces_work_without_gradients_and_with_a_frozen_head() -> None:
    head = torch.nn.Linear(16, 50, bias=False)
    x, targets = torch.randn(1, 8, 16), torch.randint(0, 50, (1, 8))
    with torch.no_grad():
        expected = loss_over(targets, 1, 0.0)(head, x)
        torch.testing.assert_close(loss_over(targets, 4, 0.0)(head, x), expected)
    head.requires_grad_(False)
    x.requires_grad_()
    loss_over(targets, 4, 0.0)(head, x).backward()
    assert x.grad is not None and head.weight.grad is None


def test_a_large_vocabulary_is_cut_into_pieces_by_itself() -> None:
    assert chunks_for(0, 8192, 128_256) == 4
    assert chunks_for(0, 8192, 32_000) == 1
    assert chunks_for(7, 8192, 32_000) == 7


#: One rank of a group of one: the arithmetic of a split vocabulary, without other words.
@pytest.fixture
def alone() -> Iterator[TensorParallel]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield TensorParallel(dist.group.WORLD, 0, 1)
    dist.destroy_process_group()


@pytest.mark.parametrize("z_weight", [0.0, 1e-3])
@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("frozen", [(), ("x",), ("weight",)], ids=str)
def test_a_vocabulary_in_parts_gives_the_value_and_gradients_of_the_whole(
    alone: TensorParallel, chunks: int, z_weight: float, frozen: tuple[str, ...]
) -> None:
    generator = torch.Generator().manual_seed(5)
    found = []
    for parts in (None, alone):
        generator.manual_seed(5)
        head = torch.nn.Linear(16, 50, bias=False)
        x = torch.randn(2, 10, 16, generator=generator).requires_grad_("x" not in frozen)
        weight = torch.randn(50, 16, generator=generator)
        targets = torch.randint(0, 50, (2, 10), generator=generator)
        if parts is not None:
            weight = DTensor.from_local(weight, init_device_mesh("cpu", (1,)), [Shard(0)])
        head.weight = torch.nn.Parameter(weight, requires_grad="weight" not in frozen)
        loss = loss_over(targets, chunks, z_weight, tensor=parts)(head, x)
        (0.25 * loss).backward()
        grads = (x.grad, head.weight.grad)
        found.append([loss.detach(), *(grad.to_local() if isinstance(grad, DTensor) else grad for grad in grads)])
    for expected, actual in zip(*found, strict=True):
        assert (expected is None) == (actual is None)
        if expected is not None:
            torch.testing.assert_close(actual, expected, atol=1e-6, rtol=1e-5)


def test_the_logits_of_a_split_vocabulary_are_never_there_all_at_once() -> None:
    """Of four ranks each: the largest tensor of the loss is one piece of one rank's words."""
    sizes: list[int] = []

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            made = function(*args, **(kwargs or {}))
            listed = made if isinstance(made, (list, tuple)) else [made]
            sizes.extend(tensor.numel() for tensor in listed if isinstance(tensor, torch.Tensor))
            return made

    with faked_world(4):
        parts = TensorParallel(dist.group.WORLD, 1, 4)
        weight = torch.nn.Parameter(torch.randn(1000, 16))
        x, targets = torch.randn(1, 16, 16, requires_grad=True), torch.randint(0, 4000, (1, 64))
        with Sizes():
            VocabularyLoss.apply(x, weight, targets, 4000, parts, 8, 0.0).backward()
    assert max(sizes) == max(64 // 8 * 1000, weight.numel()), "64 positions, 8 pieces, 4,000 words on 4 ranks"
