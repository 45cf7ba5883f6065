"""Initial values of the parameters, independent of the layout.

Each parameter has its own generator, seeded with the run's seed and the parameter's name. Every rank generates the full parameter and keeps
its shard, so the initial model does not depend on the number of ranks, without communication.
"""

import hashlib
import math
from functools import partial

import torch

from slipway_trainer.sharding import Values

STANDARD_DEVIATION = 0.02


def generator_for(name: str, seed: int, device: torch.device) -> torch.Generator:
    """A generator that depends only on the parameter's name and the seed."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator(device=device).manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def first_values(name: str, size: torch.Size, layers: int, seed: int, device: torch.device) -> torch.Tensor:
    """A full parameter in float32: norms are one, biases, offsets and sinks zero, matrices normally distributed.

    The output projections of residual branches are divided by sqrt(2 * layers).
    """
    if name.endswith((".bias", ".choice_bias", ".offset", ".sinks")):
        return torch.zeros(size, device=device)
    if len(size) == 1:
        return torch.ones(size, device=device)
    if name.endswith("lora_b"):
        # Initially, an adapter has no effect, so that training starts from the base model.
        return torch.zeros(size, device=device)
    deviation = STANDARD_DEVIATION
    if name.endswith(("o_proj.weight", "down_proj.weight")):
        deviation /= math.sqrt(2 * layers)
    values = torch.empty(size, device=device)
    return values.normal_(0.0, deviation, generator=generator_for(name, seed, device))


def values_of(layers: int, seed: int, device: torch.device) -> Values:
    """The initial values of the parameters of a model."""
    return partial(first_values, layers=layers, seed=seed, device=device)
