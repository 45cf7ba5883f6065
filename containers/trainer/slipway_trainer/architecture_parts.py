"""Parts of a model's shape that have fields of their own, in the words of job.json's `model`. No PyTorch here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Temperature:
    """How queries grow with their position (Llama 4; arXiv 2501.19399)."""

    scale: float
    floor: int


@dataclass(frozen=True)
class Family:
    """What only some families of models have; the fields of `model.family`."""

    model_type: str = ""
    #: rms, or rms-offset: weights of norms are offsets from one (Gemma).
    norm: str = "rms"
    #: What the norm of queries and keys spans: each head, or the whole projection (OLMo 2); weightless: each head, and it has no weights.
    qk_norm: str = "head"
    #: Bias of attention's output projection; None = as attention_bias.
    output_bias: bool | None = None
    #: None = silu for a gated feed-forward block, gelu for a plain one.
    activation: str | None = None
    #: What scores are multiplied by; None = 1 / sqrt(head_size).
    attention_scale: float | None = None
    #: Theta of rotary positions in layers with a window; None = as in all layers.
    local_rope_theta: float | None = None
    #: Neighbouring elements of a head turn together, instead of its halves.
    interleaved_rope: bool = False
    #: Biases of all projections of an expert, and of the router.
    expert_bias: bool = False
    router_bias: bool = False
    #: Queries of layers without rotary positions are multiplied by 1 + scale * ln(1 + floor((position + 1) / floor)).
    temperature: Temperature | None = None
    #: A sigmoid of the token weighs what the shared experts add.
    shared_expert_gate: bool = False


def read_family(raw: Mapping[str, Any]) -> Family:
    """What a model family does otherwise, from `model.family` of job.json, defaults filled."""
    heat = raw.get("attentionTemperature")
    return Family(
        model_type=str(raw.get("modelType", "")),
        norm=str(raw.get("norm", "rms")),
        qk_norm=str(raw.get("qkNorm", "head")),
        output_bias=raw.get("outputBias"),
        activation=raw.get("activation"),
        attention_scale=raw.get("attentionScale"),
        local_rope_theta=raw.get("localRopeTheta"),
        interleaved_rope=bool(raw.get("interleavedRope", False)),
        expert_bias=bool(raw.get("expertBias", False)),
        router_bias=bool(raw.get("routerBias", False)),
        temperature=Temperature(float(heat["scale"]), int(heat["floor"])) if heat else None,
        shared_expert_gate=bool(raw.get("sharedExpertGate", False)),
    )


@dataclass(frozen=True)
class Window:
    """Layers whose queries see only the last `size` positions, themselves included; or those of their own chunk of `size` positions."""

    size: int
    #: all, alternate (beginning with a window), or numbers of layers.
    pattern: str | tuple[int, ...]
    chunked: bool = False

    def has(self, layer: int) -> bool:
        """Whether this layer (from 0) has the window."""
        if self.pattern == "all":
            return True
        return layer % 2 == 0 if self.pattern == "alternate" else layer in self.pattern


def read_window(raw: Mapping[str, Any] | None, chunk: Mapping[str, Any] | None) -> Window | None:
    """`chunk`: `attentionChunk` of the family."""
    if chunk:
        return Window(int(chunk["size"]), tuple(chunk["layers"]), chunked=True)
    if not raw:
        return None
    pattern = raw.get("pattern", "all")
    return Window(int(raw["size"]), tuple(pattern) if isinstance(pattern, list) else str(pattern))


@dataclass(frozen=True)
class Latent:
    """Sizes of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): one head each, but for the two ranks."""

    kv_rank: int
    nope_head_size: int
    rope_head_size: int
    value_head_size: int
    #: None = queries are projected directly.
    q_rank: int | None = None

    @property
    def head_size(self) -> int:
        """Of queries and keys."""
        return self.nope_head_size + self.rope_head_size


def read_latent(raw: Mapping[str, Any] | None) -> Latent | None:
    """Sizes of latent attention from job.json; None for a model without it."""
    if not raw:
        return None
    sizes = [int(raw[name]) for name in ("kvRank", "nopeHeadSize", "ropeHeadSize", "valueHeadSize")]
    return Latent(*sizes, q_rank=int(raw["qRank"]) if raw.get("qRank") else None)


@dataclass(frozen=True)
class Routing:
    """Which experts a token visits, and what their results are multiplied by."""

    #: What becomes of the router's outputs before the best are taken: softmax or sigmoid.
    score: str = "softmax"
    #: Weights of the chosen experts are divided by their sum.
    normalises: bool = True
    #: A bias per expert is added for the choice alone (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).
    has_bias: bool = False
    #: Experts stand in so many groups, and a token may visit those of `top_groups` groups.
    groups: int = 1
    top_groups: int = 1
    #: Experts of a group whose scores make that of the group: the best (DeepSeek-V2), or the two best (V3).
    deciding_experts: int = 2
    #: Weights are multiplied by it in the end.
    scaling: float = 1.0
    #: What an expert is given is multiplied by its weight, instead of what it gives (Llama 4).
    weighs_inputs: bool = False

    def parts(self) -> dict[str, bool]:
        """What Mixtral's routing does not have, by name."""
        return {
            f"routing.score {self.score}": self.score != "softmax",
            "routing.normalise false": not self.normalises,
            "routing.bias": self.has_bias,
            "routing.groups": self.groups > 1,
            "routedScaling": self.scaling != 1.0,
            "weighsExpertInputs": self.weighs_inputs,
        }


def read_routing(raw: Mapping[str, Any] | None, family: Mapping[str, Any]) -> Routing:
    """How tokens choose experts, from job.json, defaults filled."""
    values = raw or {}
    groups = int(values.get("groups") or 1)
    return Routing(
        score=str(values.get("score", "softmax")),
        normalises=bool(values.get("normalise", True)),
        has_bias=bool(values.get("bias", False)),
        groups=groups,
        top_groups=int(values.get("topGroups") or groups),
        deciding_experts=1 if family.get("groupScore") == "best" else 2,
        scaling=float(family.get("routedScaling", 1.0)),
        weighs_inputs=bool(family.get("weighsExpertInputs", False)),
    )
