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
from slipway_trainer.sharding import named_tensors

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
EXPERT = MIXTURE | {"expertFfnHiddenSize": 40}
WINDOW = {"size": 48, "pattern": [0, 2]}
LATENT = {"qRank": 24, "kvRank": 20, "nopeHeadSize": 12, "ropeHeadSize": 8, "valueHeadSize": 10}
MSCALE_ROPE = YARN_ROPE | {"mscale": 1.0, "mscaleAllDim": 0.8}
#: The square root of the hidden size of the tests' model.
GEMMA_SCALE = 32**0.5
GEMMA = {"norm": "rms-offset", "activation": "gelu-tanh"}
#: Families of today in the words of job.json, each with the parts that its config.json has.
TODAY: dict[str, dict[str, Any]] = {
    "Mistral with a window": {"slidingWindow": {"size": 48, "pattern": "all"}, "family": {"modelType": "mistral"}},
    "Qwen 2.5": {"attentionBias": True, "family": {"modelType": "qwen2", "outputBias": False}},
    "Qwen 3": {"qkNorm": True, "headSize": 32, "family": {"modelType": "qwen3"}},
    "OLMo 2": {"qkNorm": True, "normPlacement": "post", "family": {"modelType": "olmo2", "qkNorm": "whole"}},
    "Gemma 2": {
        "tiedEmbeddings": True, "embeddingScale": GEMMA_SCALE, "normPlacement": "sandwich", "slidingWindow": WINDOW,
        "logitSoftcap": {"attention": 50.0, "final": 30.0}, "family": GEMMA | {"modelType": "gemma2", "attentionScale": 24**-0.5},
    },
    "Gemma 3": {
        "tiedEmbeddings": True, "embeddingScale": GEMMA_SCALE, "normPlacement": "sandwich", "slidingWindow": WINDOW, "qkNorm": True,
        "ropeTheta": 1e6, "family": GEMMA | {"modelType": "gemma3_text", "attentionScale": 24**-0.5, "localRopeTheta": 1e4},
    },
    "Qwen2-MoE": EXPERT | {
        "attentionBias": True, "sharedExperts": 1, "routing": {"normalise": False},
        "family": {"modelType": "qwen2_moe", "outputBias": False, "sharedFfnHiddenSize": 56, "sharedExpertGate": True},
    },
    "Qwen3-MoE": EXPERT | {"qkNorm": True, "family": {"modelType": "qwen3_moe"}},
    "GPT-OSS": MIXTURE | {
        "attentionSinks": True, "attentionBias": True, "slidingWindow": WINDOW, "ropeScaling": YARN_ROPE | {"truncate": False},
        "family": {"modelType": "gpt_oss", "activation": "clamped-swiglu", "expertBias": True, "routerBias": True},
    },
    "DeepSeek-V2": EXPERT | {
        "latentAttention": LATENT, "sharedExperts": 2, "denseLayers": 1, "routing": {"normalise": False, "groups": 2, "topGroups": 1},
        "family": {"modelType": "deepseek_v2", "interleavedRope": True, "groupScore": "best", "routedScaling": 4.0},
    },
    "DeepSeek-V3": EXPERT | {
        "latentAttention": LATENT, "sharedExperts": 1, "denseLayers": 1, "ropeScaling": MSCALE_ROPE,
        "routing": {"score": "sigmoid", "bias": True, "groups": 2, "topGroups": 1},
        "family": {"modelType": "deepseek_v3", "interleavedRope": True, "routedScaling": 2.5},
    },
    "Llama 4 (text)": EXPERT | {
        "expertsPerToken": 1, "sharedExperts": 1, "denseLayers": [0], "unrotatedLayers": [1], "qkNorm": True,
        "routing": {"score": "sigmoid", "normalise": False},
        "family": {
            "modelType": "llama4_text", "qkNorm": "weightless", "interleavedRope": True, "weighsExpertInputs": True,
            "attentionChunk": {"size": 48, "layers": [0, 2]}, "attentionTemperature": {"scale": 0.1, "floor": 64},
        },
    },
}  # fmt: skip
FAMILIES |= TODAY
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
        for name, tensor in named_tensors(model):
            # Zero is where they begin and says nothing of them.
            if name.endswith(("bias", "sinks")):
                tensor.normal_(0.0, 0.1, generator=torch.Generator().manual_seed(13))
    return model


def their_model(folder: Path) -> Any:
    """What transformers reads from an export, in float32."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    # Some families name a padding token, whose embedding transformers gives no gradient.
    model.get_input_embeddings().padding_idx = None
    return model


def pair(changes: dict[str, Any], folder: Path, scale: float = 1.0) -> tuple[Transformer, Any]:
    """Both models with the same weights."""
    ours = our_model(changes, scale)
    publish(ours, folder)
    return ours, their_model(folder)
