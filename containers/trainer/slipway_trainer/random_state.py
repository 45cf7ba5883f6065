"""The state of the random number generators of a rank, as tensors of a checkpoint."""

from collections.abc import Mapping

import torch
from torch import Tensor

from slipway_trainer.world import World


def random_state(world: World) -> dict[str, Tensor]:
    """Random number generator states of this rank, with the rank in the name."""
    states = {f"random.cpu.{world.rank}": torch.get_rng_state()}
    if world.device.type == "cuda":
        states[f"random.cuda.{world.rank}"] = torch.cuda.get_rng_state(world.device)
    return states


def restore_random_state(world: World, states: Mapping[str, Tensor]) -> None:
    """Continues with the states of a checkpoint."""
    torch.set_rng_state(states[f"random.cpu.{world.rank}"])
    if world.device.type == "cuda":
        torch.cuda.set_rng_state(states[f"random.cuda.{world.rank}"], world.device)
