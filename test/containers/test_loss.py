"""The loss in pieces: the same value and gradients as in one, with each product computed once."""

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from slipway_trainer.loss import chunks_for, loss_over  # noqa: E402


class Products(TorchDispatchMode):
    """Counts matrix products."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += function in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default, torch.ops.aten.bmm.default)
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
