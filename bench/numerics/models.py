"""Models of both sides with the same weights: the trainer's, and the one that transformers makes of the trainer's export."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from plain_loop import publish
from rank_world import trainer_job
from slipway_trainer.initialise import initialise
from slipway_trainer.model import Transformer
from slipway_trainer.settings import resolve_settings

#: The model of every check unless it says otherwise: three layers, grouped-query attention.
BASE = {"layers": 3}
LLAMA3_ROPE = {"type": "llama3", "factor": 8, "lowFreqFactor": 1, "highFreqFactor": 4, "originalMaxPositionEmbeddings": 128}
YARN_ROPE = {"type": "yarn", "factor": 4, "originalMaxPositionEmbeddings": 256}
MIXTURE = {"experts": 4, "expertsPerToken": 2}
FAMILIES: dict[str, dict[str, Any]] = {
    "grouped-query attention": {},
    "multi-head attention": {"kvHeads": 4},
    "tied embeddings": {"tiedEmbeddings": True},
    "Llama 3.1 rope scaling": {"ropeTheta": 500_000.0, "ropeScaling": LLAMA3_ROPE},
    "YaRN rope scaling": {"headSize": 32, "ropeScaling": YARN_ROPE},
    "mixture of experts (Mixtral)": MIXTURE,
}
#: Weights as large as those of a trained model, so that attention is far from uniform and positions matter.
TRAINED_SCALE = 8.0


def our_model(changes: dict[str, Any], scale: float = 1.0) -> Transformer:
    """The trainer's model with its first values; matrices are `scale` times as large."""
    architecture = resolve_settings(trainer_job(model=BASE | changes), [], {}).architecture
    model = Transformer(architecture)
    initialise(model, architecture.layers, 11, torch.device("cpu"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.mul_(1.0 if "norm" in name else scale)
    return model


def their_model(folder: Path) -> Any:
    """What transformers reads from an export, in float32."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def pair(changes: dict[str, Any], folder: Path, scale: float = 1.0) -> tuple[Transformer, Any]:
    """Both models with the same weights."""
    ours = our_model(changes, scale)
    publish(ours, folder)
    return ours, their_model(folder)
