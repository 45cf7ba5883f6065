"""Root-mean-square norms. Shape suffixes as in model.py."""

import torch
from torch import Tensor, nn

from slipway_trainer.architecture import Architecture


def _scaled(x_BLD: Tensor, epsilon: float) -> Tensor:
    wide = x_BLD.float()
    return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)


class RmsNorm(nn.Module):
    """Root-mean-square norm, computed in float32."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.epsilon = epsilon

    def forward(self, x_BLD: Tensor) -> Tensor:
        return _scaled(x_BLD, self.epsilon).to(x_BLD.dtype) * self.weight


class OffsetNorm(nn.Module):
    """The norm of Gemma: its weights are offsets from one."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(size))
        self.epsilon = epsilon

    def forward(self, x_BLD: Tensor) -> Tensor:
        return (_scaled(x_BLD, self.epsilon) * (1.0 + self.offset.float())).to(x_BLD.dtype)


class WeightlessNorm(nn.Module):
    """The norm of Llama 4's queries and keys: nothing of it is learned."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x_BLHE: Tensor) -> Tensor:
        return _scaled(x_BLHE, self.epsilon).to(x_BLHE.dtype)


def norm_of(shape: Architecture, size: int) -> nn.Module:
    """The family's norm over a last dimension of `size`."""
    kind = OffsetNorm if shape.family.norm == "rms-offset" else RmsNorm
    return kind(size, shape.norm_epsilon)
