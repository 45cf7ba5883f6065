"""Gradient clipping over SMP's groups: the norm before, as a tensor."""

from stub_log import record
from torch.sagemaker import STATE, need


def clip_grad_norm_(model, max_norm, norm_type=2.0):
    need(STATE["initialised"], "clip_grad_norm_ comes after init")
    record("tsm.clip_grad_norm_", max_norm=max_norm)
    return model.clip_grad_norm_(max_norm, norm_type)
