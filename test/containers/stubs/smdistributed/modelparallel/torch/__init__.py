"""Contract of SMP v1 for PyTorch: calls, order and arguments, on one CPU process.

Sources: SageMaker Python SDK documentation v2.199.0 (smd_model_parallel_pytorch), SageMaker developer guide
model-parallel-extended-features-pytorch-fp16 and model-parallel-customize-tips-pitfalls (retrieved 2026-11-20).
"""

import json
import os
from contextlib import contextmanager
from types import SimpleNamespace

import torch
from stub_log import record

_PARAMETERS = json.loads(os.environ.get("SM_HP_MP_PARAMETERS", "{}"))
state = SimpleNamespace(
    cfg=SimpleNamespace(
        fp16=bool(_PARAMETERS.get("fp16", False)),
        bf16=bool(_PARAMETERS.get("bf16", False)),
        prescaled_batch=bool(_PARAMETERS.get("prescaled_batch", False)),
        sharded_data_parallel_degree=int(_PARAMETERS.get("sharded_data_parallel_degree", 1)),
    )
)
_state = {"initialised": False, "model": None, "in_step": False, "optimizer": False}


def _need(condition, what):
    if not condition:
        raise RuntimeError("SMP v1 contract: " + what)


def _degree(name):
    _need(_state["initialised"], "smp.init() comes before everything else")
    return int(_PARAMETERS.get(name, 1))


def init(config=None):
    _need(not _state["initialised"], "smp.init() is called once")
    _state["initialised"] = True
    record("smp.init", parameters=_PARAMETERS)


def tp_size():
    return _degree("tensor_parallel_degree")


def pp_size():
    return _degree("pipeline_parallel_degree")


def dp_size():
    # In this one process; the degrees pretend that the other ranks are there.
    return tp_size()


def rdp_size():
    return dp_size() // tp_size()


def _only_rank():
    _need(_state["initialised"], "smp.init() comes before everything else")
    return 0


rdp_rank = dp_rank = tp_rank = pp_rank = local_rank = rank = _only_rank


def barrier():
    record("smp.barrier")


@contextmanager
def model_creation(tensor_parallelism=False, dtype=None, **tensor_parallel_config):
    _need(_state["initialised"], "smp.init() comes before the model")
    _need(tensor_parallelism == (tp_size() > 1), "tensor_parallelism agrees with tensor_parallel_degree")
    _need((dtype == torch.float16) == bool(_PARAMETERS.get("fp16")), "dtype float16 goes with the parameter fp16")
    _need((dtype == torch.bfloat16) == bool(_PARAMETERS.get("bf16")), "dtype bfloat16 goes with the parameter bf16")
    record("smp.model_creation", tensor_parallelism=tensor_parallelism, dtype=dtype, **tensor_parallel_config)
    yield


class DistributedModel(torch.nn.Module):
    def __init__(self, module, trace_device="gpu", **options):
        super().__init__()
        _need(_state["initialised"] and _state["model"] is None, "one DistributedModel, after smp.init()")
        record("smp.DistributedModel", trace_device=trace_device, **options)
        self.module = module
        self._backward = False
        for parameter in module.parameters():
            parameter.register_hook(self._only_our_backward)
        _state["model"] = self

    def _only_our_backward(self, gradient):
        _need(self._backward, "model.backward(loss) replaces loss.backward()")
        return gradient

    def forward(self, *arguments, **named):
        _need(_state["in_step"], "the model is called inside a function decorated with @smp.step")
        return self.module(*arguments, **named)

    def backward(self, loss):
        _need(_state["in_step"], "model.backward is called inside a function decorated with @smp.step")
        record("model.backward")
        self._backward = True
        loss.backward()
        self._backward = False


class DistributedOptimizer:
    def __init__(self, optimizer, static_loss_scale=1.0, dynamic_loss_scale=False, dynamic_loss_args=None):
        _need(_state["model"] is not None, "the optimizer comes after DistributedModel")
        held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        _need(held == {id(parameter) for parameter in _state["model"].parameters()}, "the optimizer holds the wrapped model's parameters")
        if _PARAMETERS.get("fp16"):
            _need(dynamic_loss_scale and static_loss_scale is None, "fp16 takes dynamic loss scaling")
        record("smp.DistributedOptimizer", dynamic_loss_scale=dynamic_loss_scale, dynamic_loss_args=dynamic_loss_args)
        self.optimizer = optimizer
        _state["optimizer"] = True

    def zero_grad(self, set_to_none=False):
        self.optimizer.zero_grad(set_to_none)

    def clip_master_grads(self, max_norm):
        _need(_PARAMETERS.get("fp16"), "clip_master_grads belongs to fp16")
        record("optimizer.clip_master_grads", max_norm=max_norm)

    def step(self):
        record("optimizer.step")
        self.optimizer.step()


def set_activation_checkpointing(module, preserve_rng_state=True, pack_args_as_tuple=False, strategy="each"):
    _need(_state["model"] is not None, "activation checkpointing is set on the wrapped model")
    record("smp.set_activation_checkpointing", module=type(module).__name__, strategy=strategy)


class StepOutput:
    """What a step function returned, by microbatch."""

    def __init__(self, outputs):
        self.outputs = outputs

    def reduce_mean(self):
        return torch.stack([output.detach() for output in self.outputs]).mean()


def step(function):
    def decorated(*arguments, **named):
        _need(_state["optimizer"], "a step comes after DistributedOptimizer")
        count = int(_PARAMETERS.get("microbatches", 1))
        tensors = [argument for argument in arguments if torch.is_tensor(argument)]
        _need(all(len(tensor) % count == 0 for tensor in tensors), "the batch is divisible by microbatches")
        record("step", microbatches=count, batch=len(tensors[0]))
        _state["in_step"] = True
        parts = [[a.chunk(count)[i] if torch.is_tensor(a) else a for a in arguments] for i in range(count)]
        outputs = [function(*part, **named) for part in parts]
        _state["in_step"] = False
        return StepOutput(outputs)

    return decorated


def save_checkpoint(path, tag, partial=True, model=None, optimizer=None, user_content=None, **more):
    _need(model is _state["model"], "the wrapped model is saved")
    record("smp.save_checkpoint", path=path, tag=tag, partial=partial, user_content=user_content)
