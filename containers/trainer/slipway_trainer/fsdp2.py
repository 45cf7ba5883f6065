"""The default backend: FSDP2 (`fully_shard`), with a replicated dimension (HSDP) when asked. PyTorch 2.6 and later."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from slipway_trainer.initialise import initialise
from slipway_trainer.layout import Layout, build_mesh
from slipway_trainer.loss import chunks_for, loss_over
from slipway_trainer.model import Transformer
from slipway_trainer.optimizer import build_optimizer, optimizer_tensors
from slipway_trainer.recompute import apply_recompute
from slipway_trainer.settings import RunSettings

_COMPUTE = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp8": torch.bfloat16}


class Fsdp2Backend:
    """Parameters, gradients and optimizer state sharded over the data-parallel ranks; compute in the run's precision."""

    def __init__(self, settings: RunSettings, layout: Layout, device: torch.device) -> None:
        self._settings = settings
        self.layout = layout
        self.device = device
        self.mesh = build_mesh(layout, device.type)
        self.data_rank = self.mesh["replicate"].get_local_rank() * layout.shard + self.mesh["shard"].get_local_rank()
        with torch.device("meta"):
            model = Transformer(settings.architecture)
        self._shard(model)
        model.to_empty(device=device)
        initialise(model, settings.architecture.layers, settings.training.seed, device)
        self.model = model
        self.optimizer = build_optimizer(model, settings.arguments, fused=device.type == "cuda")

    def _shard(self, model: Transformer) -> None:
        training, parallel = self._settings.training, self._settings.parallel
        mesh = self.mesh["replicate", "shard"] if self.layout.replicate > 1 else self.mesh["shard"]
        policy = MixedPrecisionPolicy(param_dtype=_COMPUTE[training.precision], reduce_dtype=torch.float32)
        for block in model.blocks.values():
            apply_recompute(block, training.activation_checkpointing)
            if parallel.compile:
                block.compile()
            fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=parallel.reshard_after_forward)
        fully_shard(model, mesh=mesh, mp_policy=policy)

    def state(self) -> dict[str, Tensor]:
        tensors = {f"model.{name}": parameter for name, parameter in self.model.named_parameters()}
        return tensors | optimizer_tensors(self.model, self.optimizer)

    def forward_backward(self, tokens_BL: Tensor, targets_BL: Tensor, share: float, last: bool) -> Tensor:
        # Until the last micro-step gradients stay unsharded and local, and parameters stay gathered.
        self.model.set_requires_gradient_sync(last)
        self.model.set_reshard_after_backward(last)
        loss = self._loss(tokens_BL, targets_BL)
        (loss * share).backward()
        return loss.detach()

    @torch.no_grad()
    def evaluate(self, tokens_BL: Tensor, targets_BL: Tensor) -> Tensor:
        return self._loss(tokens_BL, targets_BL)

    def _loss(self, tokens_BL: Tensor, targets_BL: Tensor) -> Tensor:
        arguments = self._settings.arguments
        chunks = chunks_for(arguments.loss_chunks, targets_BL.numel(), self._settings.architecture.vocabulary_size)
        with self._offload():
            return self.model(tokens_BL, loss_over(targets_BL, chunks, arguments.z_loss))

    def _offload(self) -> AbstractContextManager:
        """Activations kept for the backward pass wait in pinned host memory when the run asks for it."""
        if not self._settings.training.activation_offload:
            return nullcontext()
        return torch.autograd.graph.save_on_cpu(pin_memory=self.device.type == "cuda")

    def clip(self, max_norm: float) -> Tensor:
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), max_norm if max_norm > 0 else float("inf"))
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    def close(self) -> None:
        """Nothing outlives the process group."""
