"""Load of a sharded state dict into the one that is given."""

import torch.distributed.checkpoint as dcp
from stub_log import record
from torch.sagemaker import STATE, need


def load(state_dict, *, checkpoint_id=None, check_keys_matched=True, **more):
    need(STATE["initialised"] and checkpoint_id, "load comes after init and needs a checkpoint_id")
    record("tsm.load", checkpoint_id=checkpoint_id, keys=sorted(state_dict))
    if not str(checkpoint_id).startswith("s3://"):
        dcp.load(state_dict, checkpoint_id=checkpoint_id)
