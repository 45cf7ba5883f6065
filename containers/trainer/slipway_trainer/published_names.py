"""Names of the parameters in published checkpoints. Does not import PyTorch."""

from dataclasses import dataclass

from slipway_trainer.architecture import Architecture

_OUTSIDE = {"embed": "model.embed_tokens", "norm": "model.norm", "head": "lm_head"}
#: The norms of a block by norm placement.
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
#: Mixtral has its own name for the MLP of experts, and numbers the matrices of an expert.
_MIXTRAL_EXPERT = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"}
#: Families that store all experts in one tensor (experts, inputs, outputs), and whether the columns of gate and up projection alternate.
PACKED = {"gpt_oss": True, "llama4_text": False}
#: Names of the MLP of a block, if not "mlp".
_FEED_FORWARD = {"llama4_text": "feed_forward"}
#: Families with one shared expert.
_ONE_SHARED = ("qwen2_moe", "llama4_text")


@dataclass(frozen=True)
class Place:
    """A tensor of a published checkpoint, or the part of it that is one parameter."""

    tensor: str
    #: Index of the expert; None = the whole tensor.
    expert: int | None = None
    #: 0 for the gate projection and 1 for the up projection if both share a tensor.
    half: int | None = None
    #: Whether their columns alternate instead of being concatenated.
    alternates: bool = False


def published_name(name: str, shape: Architecture | None = None) -> str:
    """The published name of a parameter; without a shape, the name in Llama, Mistral and Mixtral."""
    return published_place(name, shape).tensor


def published_place(name: str, shape: Architecture | None = None) -> Place:
    """The location of a parameter in a published checkpoint; without a shape, that in Llama, Mistral and Mixtral."""
    path, _, kind = name.rpartition(".")
    kind = "weight" if kind == "offset" else kind
    if path in _OUTSIDE:
        return Place(f"{_OUTSIDE[path]}.{kind}")
    blocks, number, rest = path.split(".", 2)
    if blocks == "mtp":
        return _further_place(int(number), rest, kind, shape)
    placement = shape.norm_placement if shape is not None else "pre"
    family = shape.family.model_type if shape is not None else ""
    part, _, inner = rest.partition(".")
    block = f"model.layers.{number}"
    if part in _NORMS[placement]:
        return Place(f"{block}.{_NORMS[placement][part]}.{kind}")
    if part == "attention":
        return Place(f"{block}.self_attn.{inner}.{kind}" if inner else f"{block}.self_attn.{kind}")
    if inner.startswith("experts.") and family in PACKED:
        return _packed(f"{block}.{_FEED_FORWARD.get(family, 'mlp')}", inner, kind, PACKED[family])
    return Place(f"{block}.{_feed_forward(inner, kind, family)}")


def _further_place(module: int, rest: str, kind: str, shape: Architecture | None) -> Place:
    """Multi-token prediction modules follow the layers, as in DeepSeek-V3's files; transformers does not read them."""
    assert shape is not None, "multi-token prediction modules need an architecture"
    if rest.startswith("block."):
        return published_place(f"blocks.{shape.layers + module}.{rest.removeprefix('block.')}.{kind}", shape)
    return Place(f"model.layers.{shape.layers + module}.{'shared_head.norm' if rest == 'norm' else rest}.{kind}")


def repeated_names(shape: Architecture) -> dict[str, str]:
    """Tensors of multi-token prediction modules that repeat the model's embedding or head in published files, with the repeated name."""
    found = {}
    for module in range(shape.mtp_layers):
        block = f"model.layers.{shape.layers + module}"
        found[f"{block}.embed_tokens.weight"] = published_name("embed.weight")
        found[f"{block}.shared_head.head.weight"] = published_name("embed.weight" if shape.tied_embeddings else "head.weight")
    return found


def _feed_forward(inner: str, kind: str, family: str) -> str:
    """The name in a dense MLP or a mixture; `inner`: the path between `mlp` and the parameter."""
    is_mixtral = family in ("", "mixtral")
    dense = _FEED_FORWARD.get(family, "mlp")
    mixture = "block_sparse_moe" if is_mixtral else dense
    if kind == "choice_bias":
        return f"{mixture}.gate.e_score_correction_bias"
    if inner == "router":
        return f"{mixture}.{'router' if family in PACKED else 'gate'}.{kind}"
    if inner.startswith("shared"):
        rest = inner.removeprefix("shared")
        return f"{dense}.{'shared_expert' if family in _ONE_SHARED else 'shared_experts'}{rest}.{kind}"
    if inner.startswith("experts.") and is_mixtral:
        expert, _, matrix = inner.rpartition(".")
        return f"{mixture}.{expert}.{_MIXTRAL_EXPERT[matrix]}.{kind}"
    return f"{dense}.{inner}.{kind}"


def _packed(mixture: str, inner: str, kind: str, alternates: bool) -> Place:
    _experts, number, matrix = inner.split(".")
    suffix = "_bias" if kind == "bias" else ""
    if matrix == "down_proj":
        return Place(f"{mixture}.experts.down_proj{suffix}", int(number))
    half = 0 if matrix == "gate_proj" else 1
    return Place(f"{mixture}.experts.gate_up_proj{suffix}", int(number), half, alternates)
