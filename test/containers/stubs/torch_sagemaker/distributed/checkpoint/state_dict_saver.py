"""Synchronous save of a sharded state dict to a path or, from SMP 2.5.0 on, straight to S3. Paths are really written, by DCP."""

import torch.distributed.checkpoint as dcp
from stub_log import record
from torch.sagemaker import STATE, need


def save(state_dict, *, checkpoint_id=None, coordinator_rank=0, s3_region=None, **more):
    need(STATE["initialised"] and checkpoint_id, "save comes after init and needs a checkpoint_id")
    record("tsm.save", checkpoint_id=checkpoint_id, keys=sorted(state_dict))
    if not str(checkpoint_id).startswith("s3://"):
        dcp.save(state_dict, checkpoint_id=checkpoint_id)
