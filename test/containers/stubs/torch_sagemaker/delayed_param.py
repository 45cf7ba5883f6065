"""Delayed parameter initialisation: a model on the meta device, initialised by FSDP block by block."""

from contextlib import contextmanager

import torch
from stub_log import record
from torch.sagemaker import STATE, need


class DelayedParamIniter:
    def __init__(self, model, init_method_using_config=None, verbose=False):
        need(STATE["initialised"], "DelayedParamIniter comes after init")
        need(all(parameter.is_meta for parameter in model.parameters()), "the model is on the meta device")
        record("DelayedParamIniter")
        self._model = model

    def get_param_init_fn(self):
        def initialise(module):
            record("param_init_fn", module=type(module).__name__)
            module.to_empty(device=torch.device("cpu"), recurse=False)
            for parameter in module.parameters(recurse=False):
                torch.nn.init.normal_(parameter, std=0.02)
            if list(module.buffers(recurse=False)):
                # Tables of rotary positions: a module of the same configuration computes them.
                for name, buffer in type(module)(module.config).named_buffers(recurse=False):
                    getattr(module, name).copy_(buffer)

        return initialise

    def get_post_param_init_fn(self):
        return lambda module: record("post_param_init_fn")

    @contextmanager
    def validate_params_and_buffers_inited(self, enabled=True):
        yield
        assert not any(parameter.is_meta for parameter in self._model.parameters())
        record("validated")
