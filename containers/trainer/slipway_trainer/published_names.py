"""What published checkpoints call our parameters. No PyTorch here."""

from slipway_trainer.architecture import Architecture

_OUTSIDE = {"embed": "model.embed_tokens", "norm": "model.norm", "head": "lm_head"}
#: The norms of a block by where they stand.
_NORMS = {
    "pre": {"attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm"},
    "post": {"attention_post_norm": "post_attention_layernorm", "mlp_post_norm": "post_feedforward_layernorm"},
    "sandwich": {
        "attention_norm": "input_layernorm",
        "attention_post_norm": "post_attention_layernorm",
        "mlp_norm": "pre_feedforward_layernorm",
        "mlp_post_norm": "post_feedforward_layernorm",
    },
}
#: Mixtral calls its mixture another thing than a feed-forward block, and numbers an expert's matrices.
_MIXTRAL_EXPERT = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"}


def published_name(name: str, shape: Architecture | None = None) -> str:
    """The name of one of our parameters in a published checkpoint; without a shape in those of Llama, Mistral and Mixtral."""
    path, _, kind = name.rpartition(".")
    kind = "weight" if kind == "offset" else kind
    if path in _OUTSIDE:
        return f"{_OUTSIDE[path]}.{kind}"
    _blocks, number, rest = path.split(".", 2)
    placement = shape.norm_placement if shape is not None else "pre"
    family = shape.family.model_type if shape is not None else ""
    part, _, inner = rest.partition(".")
    if part in _NORMS[placement]:
        rest = _NORMS[placement][part]
    elif part == "attention":
        rest = f"self_attn.{inner}"
    elif inner == "router" or inner.startswith("experts."):
        rest = _mixture(inner, family)
    return f"model.layers.{number}.{rest}.{kind}"


def _mixture(inner: str, family: str) -> str:
    if family not in ("", "mixtral"):
        return "mlp.gate" if inner == "router" else f"mlp.{inner}"
    if inner == "router":
        return "block_sparse_moe.gate"
    expert, _, matrix = inner.rpartition(".")
    return f"block_sparse_moe.{expert}.{_MIXTRAL_EXPERT[matrix]}"
