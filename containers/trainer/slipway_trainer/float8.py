"""Linear layers whose matrix products run in float8: e4m3 for activations and weights, e5m2 for gradients (arXiv 2209.05433).

Each tensor is scaled by its own largest value of the moment, so that nothing has to be kept between steps; with the recipe `rowwise` each
row of a product's operands is, and gradients are e4m3 too, as the rowwise kernels and torchao have it. Weights, sums, norms, embeddings,
head, routers and experts stay as they are. Shape suffixes as in model.py; T = B * L.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.feed_forward import Experts

#: What the kernels ask of every dimension.
MULTIPLE = 16


def supported(device: torch.device) -> bool:
    """Ada, Hopper and later; torch also has a kernel for CPUs, for tests."""
    return device.type == "cpu" or torch.cuda.get_device_capability(device) >= (8, 9)


def _to_float8(x: Tensor, dtype: torch.dtype, by_row: bool = False) -> tuple[Tensor, Tensor]:
    """The tensor, or each row of it, in float8, and the factors that undo the scaling."""
    largest = torch.finfo(dtype).max
    top = x.abs().amax(dim=-1, keepdim=True) if by_row else x.abs().amax()
    scale = top.float().clamp(min=1e-12) / largest
    return (x.float() / scale).clamp(-largest, largest).to(dtype), scale


def _product(a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor], dtype: torch.dtype, fast: bool) -> Tensor:
    """a @ b; the kernel wants rows of `a` and columns of `b` to lie together."""
    (a8, a_scale), (b8, b_scale) = a, b
    columns = b8.t().contiguous().t()
    return torch._scaled_mm(a8.contiguous(), columns, scale_a=a_scale, scale_b=b_scale, out_dtype=dtype, use_fast_accum=fast)


def _product_by_row(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """a @ b.T with a scale for each row of both. The kernels give bfloat16."""
    (a8, a_scale), (b8, b_scale) = _to_float8(a, torch.float8_e4m3fn, True), _to_float8(b, torch.float8_e4m3fn, True)
    scale_b = b_scale.t().contiguous()
    product = torch._scaled_mm(
        a8.contiguous(), b8.contiguous().t(), scale_a=a_scale, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=True
    )
    return product.to(dtype)


def scales_rows(device: torch.device) -> bool:
    """Whether the kernels of this PyTorch have a scale for each row here: on Ada and Blackwell they came after those of Hopper
    (pytorch#144348, pytorch#147645)."""
    ones = torch.ones(128, 128, device=device)
    try:
        _product_by_row(ones, ones, torch.bfloat16)
    except RuntimeError:
        return False
    return True


class _Float8Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x_TD: Tensor, weight_FD: Tensor) -> Tensor:
        x, weight = _to_float8(x_TD, torch.float8_e4m3fn), _to_float8(weight_FD, torch.float8_e4m3fn)
        ctx.save_for_backward(*x, *weight)
        ctx.dtype = x_TD.dtype
        return _product(x, (weight[0].t(), weight[1]), x_TD.dtype, fast=True)

    @staticmethod
    def backward(ctx, gradient_TF: Tensor) -> tuple[Tensor, Tensor]:
        x_TD, x_scale, weight_FD, weight_scale = ctx.saved_tensors
        gradient, scale = _to_float8(gradient_TF, torch.float8_e5m2)
        to_x_TD = _product((gradient, scale), (weight_FD, weight_scale), ctx.dtype, fast=False)
        to_weight_FD = _product((gradient.t(), scale), (x_TD, x_scale), ctx.dtype, fast=False)
        return to_x_TD, to_weight_FD


class _RowwiseProduct(torch.autograd.Function):
    """Operands are kept as they came: each product scales them along another dimension."""

    @staticmethod
    def forward(ctx, x_TD: Tensor, weight_FD: Tensor) -> Tensor:
        ctx.save_for_backward(x_TD, weight_FD)
        return _product_by_row(x_TD, weight_FD, x_TD.dtype)

    @staticmethod
    def backward(ctx, gradient_TF: Tensor) -> tuple[Tensor, Tensor]:
        x_TD, weight_FD = ctx.saved_tensors
        to_x_TD = _product_by_row(gradient_TF, weight_FD.t(), x_TD.dtype)
        to_weight_FD = _product_by_row(gradient_TF.t(), x_TD.t(), x_TD.dtype)
        return to_x_TD, to_weight_FD


#: Products by what shares a scale, as `training.fp8Recipe` names it.
RECIPES = {"tensorwise": _Float8Product, "rowwise": _RowwiseProduct}


class Float8Linear(nn.Linear):
    """A linear layer. Where the number of rows does not suit the kernels it is an ordinary one."""

    recipe = "tensorwise"

    def forward(self, x_BLD: Tensor) -> Tensor:
        x_TD = x_BLD.flatten(0, -2)
        if x_TD.size(0) % MULTIPLE:
            return F.linear(x_BLD, self.weight, self.bias)
        product_BLF = RECIPES[self.recipe].apply(x_TD, self.weight).view(*x_BLD.shape[:-1], -1)
        return product_BLF if self.bias is None else product_BLF + self.bias


def apply_float8(module: nn.Module, recipe: str) -> None:
    """Replaces the plain linear layers whose sizes suit the kernels; parameters keep their names."""
    for name, child in list(module.named_children()):
        if isinstance(child, Experts):
            continue
        if type(child) is nn.Linear and child.in_features % MULTIPLE == 0 and child.out_features % MULTIPLE == 0:
            has_bias = child.bias is not None
            linear = Float8Linear(child.in_features, child.out_features, bias=has_bias, device=child.weight.device)
            linear.recipe = recipe
            setattr(module, name, linear)
        else:
            apply_float8(child, recipe)
