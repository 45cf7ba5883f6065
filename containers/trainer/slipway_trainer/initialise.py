"""First values of the parameters, the same whatever the layout.

Each parameter has a generator of its own, seeded by the run's seed and the parameter's name; every rank makes the whole parameter and
keeps its part. So 1, 4 and 400 ranks start from the same model, and nothing is sent.
"""

import hashlib
import math

import torch
from torch import nn

from slipway_trainer.sharding import fill, named_tensors

STANDARD_DEVIATION = 0.02


def generator_for(name: str, seed: int, device: torch.device) -> torch.Generator:
    """A generator that depends on nothing but the parameter's name and the seed."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator(device=device).manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def first_values(name: str, size: torch.Size, layers: int, seed: int, device: torch.device) -> torch.Tensor:
    """A whole parameter in float32: norms are one, biases, offsets and sinks zero, matrices normal.

    Those that end a residual branch are smaller by sqrt(2 layers).
    """
    if name.endswith((".bias", ".choice_bias", ".offset", ".sinks")):
        return torch.zeros(size, device=device)
    if len(size) == 1:
        return torch.ones(size, device=device)
    if name.endswith("lora_b"):
        # An adapter begins as nothing, so that the first step starts from the base model.
        return torch.zeros(size, device=device)
    deviation = STANDARD_DEVIATION
    if name.endswith(("o_proj.weight", "down_proj.weight")):
        deviation /= math.sqrt(2 * layers)
    values = torch.empty(size, device=device)
    return values.normal_(0.0, deviation, generator=generator_for(name, seed, device))


def initialise(model: nn.Module, layers: int, seed: int, device: torch.device) -> None:
    """Fills every parameter and buffer in place, sharded or not."""
    for name, tensor in named_tensors(model):
        fill(tensor, first_values(name, tensor.shape, layers, seed, device))
