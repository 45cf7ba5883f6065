"""Contract of SMP v2 (torch.sagemaker): calls, order and arguments.

Sources: SageMaker developer guide distributed-model-parallel-v2-reference and model-parallel-core-features-v2-* (retrieved 2026-11-20).
`init` without an argument reads what the job sent as `mp_parameters`.
"""

import json
import os
from types import SimpleNamespace

import torch.distributed as dist
from stub_log import record
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

STATE = {"initialised": False, "transformed": False}
state = SimpleNamespace(tp_size=1, tp_rank=0, cp_size=1, cp_rank=0)
PARAMETERS = json.loads(os.environ.get("SM_HP_MP_PARAMETERS", "{}"))


def need(condition, what):
    if not condition:
        raise RuntimeError("SMP v2 contract: " + what)


def init(config=None):
    need(not STATE["initialised"], "init is called once")
    need(dist.is_initialized(), "init comes after init_process_group where the script names a backend")
    STATE["initialised"] = True
    FullyShardedDataParallel.__init__ = _smp_fsdp(FullyShardedDataParallel.__init__)
    record("tsm.init", parameters=PARAMETERS, backend=dist.get_backend())


def _smp_fsdp(original):
    """SMP's FSDP takes post_param_init_fn and shards by its own groups; the real one below runs on this one rank."""

    def __init__(self, module, *arguments, post_param_init_fn=None, sharding_strategy=None, sync_module_states=False, **named):
        # PyTorch's own sends weights to GPUs only; here every rank that is asked holds them.
        if sharding_strategy is not None:
            hybrid = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
            need(sharding_strategy in hybrid, "hybrid_shard_degree wants a hybrid strategy in the script")
            precision = named["mixed_precision"]
            record(
                "FSDP", strategy=sharding_strategy.name, param=precision.param_dtype, reduce=precision.reduce_dtype, sync=sync_module_states
            )
            if post_param_init_fn:
                post_param_init_fn(module)
        original(self, module, *arguments, **named)

    return __init__


def transform(module, config=None, load_state_dict_from_rank0=False, cp_comm_type="p2p"):
    need(STATE["initialised"], "transform comes after init")
    need((config is not None) == (int(PARAMETERS.get("expert_parallel_degree", 1)) > 1), "MoEConfig goes with expert parallelism")
    STATE["transformed"] = True
    record(
        "tsm.transform",
        config=type(config).__name__,
        cp_comm_type=cp_comm_type,
        load_state_dict_from_rank0=load_state_dict_from_rank0,
    )
    return module
