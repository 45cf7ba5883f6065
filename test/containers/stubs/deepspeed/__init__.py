"""Contract of DeepSpeed: init_distributed, zero.Init, initialize, and an engine that wants backward before step.

Sources: deepspeed.ai getting-started and docs/config-json; DeepSpeed documentation of zero.Init and initialize (retrieved 2026-11-20).
"""

import torch.distributed as dist
from stub_log import record

from deepspeed import zero


def init_distributed(dist_backend=None, **more):
    dist.init_process_group("gloo" if dist_backend == "nccl" else dist_backend)
    record("deepspeed.init_distributed", dist_backend=dist_backend)


class Engine:
    def __init__(self, module, optimizer, config):
        self.module, self._optimizer, self._pending = module, optimizer, False
        self._micro = config["train_micro_batch_size_per_gpu"]

    def train_micro_batch_size_per_gpu(self):
        return self._micro

    def __call__(self, *arguments, **named):
        return self.module(*arguments, **named)

    def backward(self, loss):
        loss.backward()
        self._pending = True
        record("engine.backward")

    def step(self):
        assert self._pending, "engine.backward(loss) comes before engine.step()"
        self._optimizer.step()
        self._optimizer.zero_grad()
        self._pending = False
        record("engine.step")

    def save_checkpoint(self, save_dir, tag=None, client_state=None):
        record("engine.save_checkpoint", save_dir=save_dir, tag=tag, client_state=client_state)
        return True

    def load_checkpoint(self, load_dir, tag=None):
        record("engine.load_checkpoint", load_dir=load_dir, tag=tag)
        return load_dir, {"step": 7}


def initialize(args=None, model=None, optimizer=None, model_parameters=None, config=None, **more):
    assert dist.is_initialized(), "init_distributed comes before initialize"
    assert (optimizer is None) == ("optimizer" in config), "the optimizer comes from the script or from the configuration"
    stage = config.get("zero_optimization", {}).get("stage", 0)
    assert stage < 3 or any(zero.INITS), "ZeRO-3 builds the model under deepspeed.zero.Init"
    numbers = [value for value in config.values() if value == "auto"]
    assert not numbers, '"auto" is for integrations: DeepSpeed itself wants numbers'
    record("deepspeed.initialize", config=config, model_parameters=model_parameters is not None)
    return Engine(model, optimizer, config), optimizer, None, None
