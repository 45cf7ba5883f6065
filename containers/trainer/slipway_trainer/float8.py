"""Linear layers with float8 matrix products: e4m3 for activations and weights, e5m2 for gradients (arXiv 2209.05433).

Each tensor is scaled by its current absolute maximum (dynamic scaling), so that no state is kept between steps. With the recipe `rowwise`,
each row of an operand is scaled separately and gradients also use e4m3, as in torchao. Master weights, accumulation, norms, embeddings,
head, routers and experts keep their precision. Shape suffixes as in model.py; T = B * L.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.feed_forward import Experts
from slipway_trainer.sharding import is_linear

#: The kernels require dimensions that are multiples of this.
MULTIPLE = 16


def supported(device: torch.device) -> bool:
    """Whether the device supports float8: Ada, Hopper and later. PyTorch also has a CPU kernel, which tests use."""
    return device.type == "cpu" or torch.cuda.get_device_capability(device) >= (8, 9)


def _to_float8(x: Tensor, dtype: torch.dtype, by_row: bool = False) -> tuple[Tensor, Tensor]:
    """Returns the tensor in float8 and the inverse of its scale, for the whole tensor or for each row."""
    largest = torch.finfo(dtype).max
    top = x.abs().amax(dim=-1, keepdim=True) if by_row else x.abs().amax()
    scale = top.float().clamp(min=1e-12) / largest
    return (x.float() / scale).clamp(-largest, largest).to(dtype), scale


def _product(a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor], dtype: torch.dtype, fast: bool) -> Tensor:
    """a @ b. The kernel requires `a` in row-major and `b` in column-major order."""
    (a8, a_scale), (b8, b_scale) = a, b
    columns = b8.t().contiguous().t()
    return torch._scaled_mm(a8.contiguous(), columns, scale_a=a_scale, scale_b=b_scale, out_dtype=dtype, use_fast_accum=fast)


def _product_by_row(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """a @ b.T with a scale for each row of both. The kernels return bfloat16."""
    b8, b_scale = _to_float8(b, torch.float8_e4m3fn, True)
    columns = b8.t(), b_scale.t().contiguous()
    return _product(_to_float8(a, torch.float8_e4m3fn, True), columns, torch.bfloat16, fast=True).to(dtype)


def scales_rows(device: torch.device) -> bool:
    """Whether this PyTorch has rowwise-scaled kernels for the device: those for Ada and Blackwell were added after those for Hopper
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
    """Saves the unscaled operands, because each product scales them along another dimension."""

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


#: Matrix products by their scaling, named as in `training.fp8Recipe`.
RECIPES = {"tensorwise": _Float8Product, "rowwise": _RowwiseProduct}


class Float8Linear(nn.Linear):
    """A float8 linear layer; it falls back to an ordinary one if the kernels do not support the number of rows."""

    recipe = "tensorwise"

    def forward(self, x_BLD: Tensor) -> Tensor:
        x_TD = x_BLD.flatten(0, -2)
        if x_TD.size(0) % MULTIPLE:
            return F.linear(x_BLD, self.weight, self.bias)
        product_BLF = RECIPES[self.recipe].apply(x_TD, self.weight).view(*x_BLD.shape[:-1], -1)
        return product_BLF if self.bias is None else product_BLF + self.bias


def apply_float8(module: nn.Module, recipe: str) -> None:
    """Replaces the plain linear layers whose sizes the kernels support; parameters keep their names."""
    for name, child in list(module.named_children()):
        if isinstance(child, Experts):
            continue
        if is_linear(child) and child.in_features % MULTIPLE == 0 and child.out_features % MULTIPLE == 0:
            has_bias = child.bias is not None
            linear = Float8Linear(child.in_features, child.out_features, bias=has_bias, device=child.weight.device)
            linear.recipe = recipe
            setattr(module, name, linear)
        else:
            apply_float8(child, recipe)
