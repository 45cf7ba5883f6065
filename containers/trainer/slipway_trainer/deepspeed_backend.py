"""The backend for DeepSpeed ZeRO, stages 1 to 3. DeepSpeed's engine runs the optimizer, clips gradients and writes checkpoints; the run
file contains its JSON configuration."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.utils import safe_get_full_fp32_param
from torch import Tensor, nn

from slipway_trainer.backend import Backend
from slipway_trainer.batches import MicroBatch
from slipway_trainer.layout import Layout, data_rank
from slipway_trainer.lora import apply_lora
from slipway_trainer.model import Transformer
from slipway_trainer.objective import Objective
from slipway_trainer.optimizer import plain_adamw
from slipway_trainer.recompute import save_activation_memory
from slipway_trainer.settings import RunSettings
from slipway_trainer.weights import PublishedWeights, published_of, starting_values


def engine_config(settings: RunSettings, layout: Layout, environ: Mapping[str, str]) -> dict[str, Any]:
    """The configuration of DeepSpeed: that of the run, with the settings that the trainer determines."""
    given = environ.get("SLIPWAY_DEEPSPEED_CONFIG")
    config = dict(json.loads(given) if given else settings.job["distribution"].get("parameters") or {})
    config.pop("dist_backend", None)
    training = settings.training
    decided = {
        "train_batch_size": training.global_batch_size,
        "train_micro_batch_size_per_gpu": training.micro_batch_size,
        "gradient_accumulation_steps": training.global_batch_size // (training.micro_batch_size * layout.data_ranks),
        "gradient_clipping": settings.arguments.clip_norm,
        "bf16": {"enabled": training.precision == "bf16"},
        # PyTorch's AdamW, because DeepSpeed's own needs a compiler in the image.
        "zero_allow_untested_optimizer": True,
    }
    return config | decided


class _EngineOptimizer:
    """The optimizer interface for the training loop: the engine runs the optimizer step in `clip`."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return self._optimizer.param_groups

    def step(self) -> None: ...
    def zero_grad(self) -> None: ...


class _EngineCheckpoints:
    """Saves each checkpoint folder as a `tag` of DeepSpeed."""

    format = "deepspeed"

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def write(self, uri: str) -> None:
        path = Path(uri)
        self._engine.save_checkpoint(str(path.parent), tag=path.name, save_latest=False)

    def read(self, uri: str) -> None:
        path = Path(uri)
        self._engine.load_checkpoint(str(path.parent), tag=path.name)


class DeepSpeedBackend(Backend):
    """The trainer's model in a DeepSpeed engine."""

    def __init__(self, settings: RunSettings, layout: Layout, device: torch.device, weights: Path | None = None) -> None:
        self.layout, self.device = layout, device
        self.data_rank = data_rank(layout, dist.get_rank())
        config = engine_config(settings, layout, os.environ)
        deepspeed.init_distributed(dist_backend=dist.get_backend())
        self._objective = Objective(settings, None, device)
        whole_stage = config.get("zero_optimization", {}).get("stage", 0) == 3
        # ZeRO-3 partitions parameters as they are created, so that no rank holds the whole model.
        with deepspeed.zero.Init(config_dict_or_path=config) if whole_stage else nullcontext():
            module = Transformer(settings.architecture)
        if settings.training.lora is not None:
            apply_lora(module, settings.training.lora)
        save_activation_memory(module, settings, device)
        # `ds_shape`: before ZeRO-3 partitioned the parameter.
        self.shapes = {name: torch.Size(getattr(one, "ds_shape", one.shape)) for name, one in module.named_parameters()}
        self._fill(module, settings, published_of(settings, self.shapes, weights))
        optimizer = plain_adamw(module.named_parameters(), self.shapes, settings.arguments)
        self.model, wrapped, *_ = deepspeed.initialize(model=module, optimizer=optimizer, config=config)
        self.optimizer: Any = _EngineOptimizer(wrapped)
        self.library_checkpoints = _EngineCheckpoints(self.model)

    def _fill(self, module: nn.Module, settings: RunSettings, published: PublishedWeights | None) -> None:
        values = starting_values(settings, published, torch.device("cpu"))
        for name, parameter in module.named_parameters():
            whole = values(name, self.shapes[name])
            with torch.no_grad(), deepspeed.zero.GatheredParameters([parameter], modifier_rank=0):
                if parameter.shape == whole.shape:
                    parameter.copy_(whole)

    def whole_tensors(self) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in self.model.module.named_parameters():
            if parameter.requires_grad:
                yield name, safe_get_full_fp32_param(parameter).detach().view(self.shapes[name])
                continue
            with deepspeed.zero.GatheredParameters([parameter]):
                yield name, parameter.detach().clone()

    def forward_backward(self, batch: MicroBatch, share: float | Tensor, last: bool) -> Tensor:
        loss = self._objective(self.model, batch)
        # The engine divides by the number of micro-steps, which corresponds to `share`.
        self.model.backward(loss)
        if not last:
            self.model.step()
        return loss.detach()

    def clip(self, max_norm: float) -> Tensor:
        """Runs the engine's step, which clips to the configured norm. The caller ends the run before the next save if the norm is not
        finite."""
        self.model.step()
        return torch.as_tensor(self.model.get_global_grad_norm())

    def close(self) -> None:
        self.model.destroy()
