"""A peer of bench:trainer: torchtitan's Llama 3 model (0.3.0), in the plain loop. Its own trainer needs a GPU and its own data.

Attention is its wrapper of PyTorch's scaled dot product, as in both other rows: its language models are configured for FlexAttention,
which exists to mask documents from each other, and these tokens are one document.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed.fsdp
from torch import nn

if not hasattr(torch.distributed.fsdp, "DataParallelMeshDims"):
    # PyTorch 2.11 lacks it; torchtitan 0.3.0 imports it for its parallel layouts, which a loop on one device does not use.
    torch.distributed.fsdp.DataParallelMeshDims = object

from torchtitan.models.common import ComplexRoPE, Embedding, Linear, RMSNorm
from torchtitan.models.common.attention import ScaledDotProductAttention
from torchtitan.models.common.config_utils import make_ffn_config, make_gqa_config
from torchtitan.models.llama3.model import Llama3Model, Llama3TransformerBlock

from peer_loop import train
from slipway_trainer.settings import Architecture, RunSettings

_MATRIX: dict[str, Callable] = {"weight": partial(nn.init.normal_, std=0.02)}
_NORM: dict[str, Callable] = {"weight": nn.init.ones_}


def block(shape: Architecture, sequence_length: int) -> Llama3TransformerBlock.Config:
    width = shape.hidden_size
    norm = partial(RMSNorm.Config, normalized_shape=width, eps=shape.norm_epsilon, param_init=_NORM)
    return Llama3TransformerBlock.Config(
        attention_norm=norm(),
        ffn_norm=norm(),
        attention=make_gqa_config(
            dim=width,
            n_heads=shape.attention_heads,
            n_kv_heads=shape.kv_heads,
            wqkv_param_init=_MATRIX,
            wo_param_init=_MATRIX,
            inner_attention=ScaledDotProductAttention.Config(),
            fuse_qkv=True,
            rope=ComplexRoPE.Config(dim=shape.head_size, max_seq_len=sequence_length, theta=shape.rope_theta),
        ),
        feed_forward=make_ffn_config(dim=width, hidden_dim=shape.ffn_hidden_size, w1_param_init=_MATRIX, w2w3_param_init=_MATRIX),
    )


def build(settings: RunSettings, device: torch.device) -> nn.Module:
    shape = settings.architecture
    width, vocabulary = shape.hidden_size, shape.vocabulary_size
    config = Llama3Model.Config(
        dim=width,
        vocab_size=vocabulary,
        tok_embeddings=Embedding.Config(num_embeddings=vocabulary, embedding_dim=width, param_init=_MATRIX),
        norm=RMSNorm.Config(normalized_shape=width, eps=shape.norm_epsilon, param_init=_NORM),
        lm_head=Linear.Config(in_features=width, out_features=vocabulary, param_init=_MATRIX),
        layers=[block(shape, settings.training.sequence_length) for _ in range(shape.layers)],
    )
    with torch.device("meta"):
        model = config.build()
    model.to_empty(device=device)
    with torch.no_grad():
        model.init_states(buffer_device=device)
    return model


if __name__ == "__main__":
    train(build, lambda model, tokens_BL: model(tokens_BL))
