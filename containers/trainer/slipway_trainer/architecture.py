"""The architecture of a model: the fields of `model` in job.json. Does not import PyTorch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from slipway_trainer.architecture_parts import (
    Family,
    Latent,
    RopeScaling,
    Routing,
    Temperature,
    Window,
    read_fields,
    read_routing,
    read_window,
)

#: Elements of a quantized weight that have a common scale (nf4.py).
PACKED_BLOCK = 64
#: How a run describes its model that neither reads nor writes published weights.
_UNPUBLISHED: tuple[Mapping[str, Any], ...] = ({"config": {"model_type": "slipway"}, "fractions": (), "accepted": {}},)


@dataclass(frozen=True)
class Architecture:
    """Architecture of a decoder-only transformer."""

    layers: int
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_size: int
    ffn_hidden_size: int
    vocabulary_size: int
    gated_mlp: bool = True
    tied_embeddings: bool = False
    rope_theta: float = 10_000.0
    norm_epsilon: float = 1e-5
    experts: int = 0
    experts_per_token: int = 0
    #: Inner size of an expert; 0 = ffn_hidden_size.
    expert_ffn_hidden_size: int = 0
    #: Indices of the layers without experts.
    dense_layers: tuple[int, ...] = ()
    routing: Routing = Routing()
    #: Inner size of the shared experts together; 0 = none.
    shared_ffn_hidden_size: int = 0
    rope_scaling: RopeScaling | None = None
    norm_placement: str = "pre"
    qk_norm: bool = False
    attention_bias: bool = False
    window: Window | None = None
    #: Indices of the layers without rotary positions.
    unrotated_layers: tuple[int, ...] = ()
    #: A learned logit per head that takes part in the softmax and has no value (arXiv 2309.17453).
    attention_sinks: bool = False
    latent: Latent | None = None
    attention_softcap: float | None = None
    final_softcap: float | None = None
    embedding_scale: float = 1.0
    #: Multi-token prediction modules (DeepSeek-V3, arXiv 2412.19437, section 2.2).
    mtp_layers: int = 0
    family: Family = Family()
    #: Parts and sizes that backends do not support, from job.json: `beyondLlama`, `unsplit` and `split`.
    limits: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    #: How files of published weights describe the model, the way of exports first (published_config.py).
    published: tuple[Mapping[str, Any], ...] = field(default=_UNPUBLISHED, compare=False, repr=False)

    def has_window(self, layer: int) -> bool:
        """Whether attention in this layer (from 0) is limited to a window."""
        return self.window is not None and self.window.has(layer)

    def has_experts(self, layer: int) -> bool:
        """Whether this layer (from 0) is a mixture of experts."""
        return self.experts > 0 and layer not in self.dense_layers

    def has_qk_norm(self, layer: int) -> bool:
        """Whether this layer (from 0) has norms of queries and keys. Norms without weights exist only in layers with rotary positions."""
        return self.qk_norm and not (self.family.qk_norm == "weightless" and layer in self.unrotated_layers)

    @property
    def expert_inner_size(self) -> int:
        """Inner size of one expert."""
        return self.expert_ffn_hidden_size or self.ffn_hidden_size

    @property
    def rotary_size(self) -> int:
        """Number of elements of a head to which rotary positions apply."""
        return self.head_size if self.latent is None else self.latent.rope_head_size

    @property
    def score_scale(self) -> float:
        """The factor of the attention scores."""
        if self.family.attention_scale is not None:
            return self.family.attention_scale
        with_scaling = self.latent is not None and self.rope_scaling is not None
        return self.head_size**-0.5 * (self.rope_scaling.score_factor if with_scaling else 1.0)

    @property
    def has_output_bias(self) -> bool:
        """Whether the output projection of attention has a bias."""
        return self.attention_bias if self.family.output_bias is None else self.family.output_bias


#: What this trainer computes; lib/core/catalog/model/trainer-limits.ts finds what it does not.
NORMS = ("rms", "rms-offset")
ACTIVATIONS = ("silu", "gelu", "gelu-tanh", "clamped-swiglu")


def read_architecture(raw: Mapping[str, Any] | None, count: Callable[..., int], issues: list[str]) -> Architecture:
    """Returns the architecture; adds errors to `issues`. `count(key)` returns a whole number of at least 1 and records errors. What follows
    from other fields is stated by the launcher (lib/core/catalog/model/trainer-limits.ts: trainedModel)."""
    values = raw or {}
    family = values.get("family") or {}
    heads, kv_heads = count("attentionHeads"), count("kvHeads")
    if heads % kv_heads != 0:
        issues.append(f"model.kvHeads: must divide the {heads} attention heads, got {kv_heads}")
    limits = values.get("limits") or {}
    issues += [f"model: must be a model whose parts the built-in trainer computes, got {part}" for part in limits.get("untrained", ())]
    caps, heat = values.get("logitSoftcap") or {}, family.get("attentionTemperature")
    scaling, latent = values.get("ropeScaling"), values.get("latentAttention")
    return read_fields(
        Architecture,
        values,
        layers=count("layers"),
        hidden_size=count("hiddenSize"),
        attention_heads=heads,
        kv_heads=kv_heads,
        head_size=count("headSize"),
        ffn_hidden_size=count("ffnHiddenSize"),
        vocabulary_size=count("vocabularySize"),
        dense_layers=tuple(values.get("denseLayers") or ()),
        routing=read_routing(values.get("routing"), family) if values.get("experts") else Routing(),
        shared_ffn_hidden_size=int(family.get("sharedFfnHiddenSize") or 0),
        rope_scaling=read_fields(RopeScaling, scaling, kind=scaling["type"]) if scaling else None,
        window=read_window(values.get("slidingWindow"), family.get("attentionChunk")),
        unrotated_layers=tuple(values.get("unrotatedLayers") or ()),
        latent=read_fields(Latent, latent) if latent else None,
        attention_softcap=caps.get("attention"),
        final_softcap=caps.get("final"),
        family=read_fields(Family, family, temperature=Temperature(float(heat["scale"]), int(heat["floor"])) if heat else None),
        published=tuple(values.get("published") or _UNPUBLISHED),
    )
