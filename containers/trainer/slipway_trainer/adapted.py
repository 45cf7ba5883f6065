"""The layers that can have low-rank adapters. Does not import PyTorch; lib/core/catalog/model/adaptable.ts has the same list."""

from slipway_trainer.architecture import Architecture


def adaptable_layers(shape: Architecture) -> list[str]:
    """Names of the linear layers of a model, without those of multi-token prediction, which excludes adapters. A head that shares its
    weights with the embedding is not among them: merging the adapter into it would change the embedding."""
    has_gate = shape.experts > 0 and shape.shared_ffn_hidden_size > 0 and shape.family.shared_expert_gate
    return [
        *_attention(shape),
        *(["gate_proj"] if shape.gated_mlp else []),
        *["up_proj", "down_proj"],
        *(["router"] if shape.experts else []),
        *(["shared_gate"] if has_gate else []),
        *([] if shape.tied_embeddings else ["head"]),
    ]


def _attention(shape: Architecture) -> list[str]:
    if shape.latent is None:
        return ["q_proj", "k_proj", "v_proj", "o_proj"]
    queries = ["q_proj"] if shape.latent.q_rank is None else ["q_a_proj", "q_b_proj"]
    return [*queries, "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"]
