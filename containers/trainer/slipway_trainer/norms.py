"""RMS norms. Shape suffixes as in model.py."""

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate

from slipway_trainer.architecture import Architecture
from slipway_trainer.sharding import own


def _scaled(x_BLD: Tensor, epsilon: float, across: DeviceMesh | None = None) -> Tensor:
    """Normalizes the last dimension. `across`: the ranks that hold equal shards of it."""
    wide = x_BLD.float()
    mean = wide.pow(2).mean(-1, keepdim=True)
    if across is not None:
        share = DTensor.from_local(mean / across.size(), across, [Partial()])
        mean = share.redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial()])
    return wide * torch.rsqrt(mean + epsilon)


class RmsNorm(nn.Module):
    """RMS norm, computed in float32."""

    #: The ranks that hold equal shards of the normalized dimension; None = it is not sharded.
    across: DeviceMesh | None = None

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.epsilon = epsilon

    def forward(self, x_BLD: Tensor) -> Tensor:
        weight = self.weight if self.across is None else own(self.weight)
        return _scaled(x_BLD, self.epsilon, self.across).to(x_BLD.dtype) * weight


class OffsetNorm(nn.Module):
    """The norm of Gemma: its weights are offsets from one."""

    across: DeviceMesh | None = None

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(size))
        self.epsilon = epsilon

    def forward(self, x_BLD: Tensor) -> Tensor:
        offset = self.offset if self.across is None else own(self.offset)
        return (_scaled(x_BLD, self.epsilon, self.across) * (1.0 + offset.float())).to(x_BLD.dtype)


class WeightlessNorm(nn.Module):
    """The norm of Llama 4's queries and keys, which has no parameters."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x_BLHE: Tensor) -> Tensor:
        return _scaled(x_BLHE, self.epsilon).to(x_BLHE.dtype)


def norm_of(shape: Architecture, size: int) -> nn.Module:
    """The norm of the model family over a last dimension of `size`."""
    kind = OffsetNorm if shape.family.norm == "rms-offset" else RmsNorm
    return kind(size, shape.norm_epsilon)
