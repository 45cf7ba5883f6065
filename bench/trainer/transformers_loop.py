"""A peer of bench:trainer: the model of transformers, in the plain loop."""

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from peer_loop import train
from slipway_trainer.published_config import published_config
from slipway_trainer.settings import RunSettings


def build(settings: RunSettings, device: torch.device) -> nn.Module:
    config = published_config(settings.architecture, settings.training.sequence_length)
    with device:
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(config.pop("model_type"), **config, use_cache=False))


if __name__ == "__main__":
    train(build, lambda model, tokens_BL: model(input_ids=tokens_BL).logits)
