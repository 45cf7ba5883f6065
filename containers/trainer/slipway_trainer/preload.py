"""What the ranks import before their first step, for the process that forks them (slipway_driver/fork_server.py). It must start no threads
and must not use a GPU."""

# Device meshes import it at their first use, which takes as long as PyTorch itself.
import torch._dynamo

import slipway_trainer.__main__
import slipway_trainer.fsdp2

__all__ = ["slipway_trainer", "torch"]
