"""The backend for SMP v2 (`torch.sagemaker`) on FSDP1, in SMP's own images. Its parameters come from the job (SM_HP_MP_PARAMETERS).

SMP replaces the layers of Hugging Face models, so the model is a Hugging Face model with the sizes of the run. The order of calls is that
of AWS: init, a model on the meta device, transform, DelayedParamIniter, FSDP, activation checkpointing, offload (SageMaker developer guide,
distributed-model-parallel-v2-reference, 2026-11-20).
"""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch.sagemaker as tsm
from torch import Tensor, nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing, offload_wrapper
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy, StateDictType
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.sagemaker.delayed_param import DelayedParamIniter
from torch.sagemaker.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.sagemaker.grad_norm import clip_grad_norm_
from transformers import AutoConfig, AutoModelForCausalLM

from slipway_trainer.batches import MicroBatch
from slipway_trainer.context_parallel import sequence_part
from slipway_trainer.exits import InvalidRun
from slipway_trainer.fsdp1 import COMPUTE, Fsdp1Backend, plain_name
from slipway_trainer.layout import Layout
from slipway_trainer.optimizer import build_optimizer
from slipway_trainer.published_config import config_issues, published_config
from slipway_trainer.settings import RunSettings


class _SmpCheckpoints:
    """Uses SMP's checkpoint functions; plain DCP would treat the ranks of a tensor or expert group as replicas."""

    format = "smp"

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._model, self._optimizer = model, optimizer

    def _state(self) -> dict[str, Any]:
        weights, moments = get_state_dict(self._model, self._optimizer)
        return {"model": weights, "optimizer": moments}

    def write(self, uri: str) -> None:
        state_dict_saver.save(self._state(), checkpoint_id=uri)

    def read(self, uri: str) -> None:
        state = self._state()
        state_dict_loader.load(state, checkpoint_id=uri)
        set_state_dict(self._model, self._optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])


class SmpBackend(Fsdp1Backend):
    """A Hugging Face model with SMP's transform and FSDP."""

    def __init__(self, settings: RunSettings, layout: Layout, device: torch.device, weights: Path | None = None) -> None:
        if weights is not None and (issues := config_issues(weights, settings.architecture, settings.training.sequence_length)):
            raise InvalidRun(*issues)
        self._settings, self.layout, self.device = settings, layout, device
        tsm.init()
        self.data_rank = _data_rank()
        self._pretrained = weights
        module = self._transformed()
        self.shapes = {name: parameter.shape for name, parameter in module.named_parameters()}
        self.model = self._wrap(module)
        self._objective = self._loss
        named = [(plain_name(name), parameter) for name, parameter in self.model.named_parameters()]
        self.optimizer = build_optimizer(named, self.shapes, settings.arguments, fused=device.type == "cuda")
        self.library_checkpoints = _SmpCheckpoints(self.model, self.optimizer)
        self._run = offload_wrapper(self.model) if settings.training.activation_offload else self.model

    @property
    def _holds_weights(self) -> bool:
        """Only rank 0 reads the published weights and sends them to the other ranks."""
        return self._pretrained is not None and dist.get_rank() == 0

    def _transformed(self) -> nn.Module:
        config = published_config(self._settings.architecture, self._settings.training.sequence_length)
        config = AutoConfig.for_model(config.pop("model_type"), **config, use_cache=False)
        with nullcontext() if self._holds_weights else torch.device("meta"):
            if self._holds_weights:
                module = AutoModelForCausalLM.from_pretrained(self._pretrained).float()
            else:
                module = AutoModelForCausalLM.from_config(config)
            return tsm.transform(module, config=self._moe_config(), load_state_dict_from_rank0=self._pretrained is not None)

    def _moe_config(self) -> Any:
        if self._settings.parallel.expert == 1:
            return None
        from torch.sagemaker.moe.moe_config import MoEConfig

        return MoEConfig(random_seed=self._settings.training.seed)

    def _wrap(self, module: nn.Module) -> FullyShardedDataParallel:
        # transform replaces the layers by its own classes; the longest ModuleList contains the layers.
        block = type(max((found for found in module.modules() if isinstance(found, nn.ModuleList)), key=len)[0])
        compute = COMPUTE[self._settings.training.precision]
        initer = None if self._holds_weights else DelayedParamIniter(module)
        with initer.validate_params_and_buffers_inited() if initer else nullcontext():
            model = FullyShardedDataParallel(
                module,
                auto_wrap_policy=ModuleWrapPolicy({block}),
                mixed_precision=MixedPrecision(param_dtype=compute, reduce_dtype=torch.float32, buffer_dtype=compute),
                sharding_strategy=ShardingStrategy.HYBRID_SHARD,
                device_id=self.device,
                limit_all_gathers=True,
                use_orig_params=True,
                sync_module_states=self._pretrained is not None,
                param_init_fn=initer.get_param_init_fn() if initer else None,
                # The FSDP of SMP ties weights after their initialization; PyTorch's FSDP has no such argument.
                post_param_init_fn=initer.get_post_param_init_fn() if initer else None,
            )
        if self._settings.training.activation_checkpointing != "none":
            apply_activation_checkpointing(model, check_fn=lambda found: isinstance(found, block))
        FullyShardedDataParallel.set_state_dict_type(model, StateDictType.SHARDED_STATE_DICT)
        return model

    def _loss(self, _model: nn.Module, batch: MicroBatch) -> Tensor:
        tokens_BL, targets_BL, *_ = batch
        if self.layout.context > 1:
            # Shifted before the split, so that no chunk loses its last token.
            tokens_BL, targets_BL = (sequence_part(part, tsm.state.cp_rank, self.layout.context) for part in (tokens_BL, targets_BL))
        logits_BLV = self._run(input_ids=tokens_BL).logits
        return F.cross_entropy(logits_BLV.flatten(0, 1).float(), targets_BL.flatten())

    def next_tokens(self, tokens_BL: Tensor, last_B: Tensor) -> Tensor:
        raise NotImplementedError("limits.py refuses samples with SMP v2")

    def clip(self, max_norm: float) -> Tensor:
        return clip_grad_norm_(self.model, max_norm if max_norm > 0 else float("inf"))


def _data_rank() -> int:
    """Index of this rank among the ranks that read different samples; the ranks of a tensor or context parallel group read the same
    samples."""
    mine = (getattr(tsm.state, "tp_rank", 0), getattr(tsm.state, "cp_rank", 0))
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    return everyone[: dist.get_rank()].count(mine)
