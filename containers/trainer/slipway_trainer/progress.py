"""Progress lines of the runtime contract, and the throughput numbers in them."""

import json
import sys
from typing import Any

from slipway_trainer.peak_tflops import PEAK_TFLOPS
from slipway_trainer.settings import Architecture, Training


def emit(event: str, **fields: Any) -> None:
    """Prints a progress line with a single write."""
    kept = {name: value for name, value in fields.items() if value is not None}
    sys.stdout.write("slipway " + json.dumps({"event": event, **kept}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def flops_per_token(shape: Architecture, sequence_length: int) -> float:
    """Model FLOPs per trained token: 6 (N_layers + V d) + 12 L d s, with full attention and without recomputation.

    For a mixture of experts, only the experts of a token and the shared experts count; norms, biases and routers do not count. A
    multi-token prediction module counts as a layer, a projection and a head.
    """
    layers = _blocks(shape)
    mixtures = sum(shape.has_experts(layer) for layer in layers)
    visited = shape.experts_per_token * shape.expert_inner_size + shape.shared_ffn_hidden_size
    inner = mixtures * visited + (len(layers) - mixtures) * shape.ffn_hidden_size
    mlp = shape.hidden_size * inner * (3 if shape.gated_mlp else 2)
    heads = shape.vocabulary_size * shape.hidden_size * (1 + shape.mtp_layers) + 2 * shape.hidden_size**2 * shape.mtp_layers
    matrices = len(layers) * _attention_matrices(shape) + mlp + heads
    head_sizes = shape.head_size + (shape.head_size if shape.latent is None else shape.latent.value_head_size)
    return 6.0 * matrices + 6.0 * shape.attention_heads * head_sizes * _keys_seen(shape, sequence_length)


def _blocks(shape: Architecture) -> list[int]:
    """The layer index that determines the kind of each block, including the blocks of multi-token prediction modules."""
    return [*range(shape.layers), *[shape.layers - 1] * shape.mtp_layers]


def _attention_matrices(shape: Architecture) -> int:
    """Number of weights in the attention projections of one layer."""
    hidden, heads, latent = shape.hidden_size, shape.attention_heads, shape.latent
    if latent is None:
        return hidden * shape.head_size * (2 * heads + 2 * shape.kv_heads)
    queries, values = heads * latent.head_size, heads * latent.value_head_size
    of_queries = hidden * queries if latent.q_rank is None else latent.q_rank * (hidden + queries)
    of_keys = hidden * (latent.kv_rank + latent.rope_head_size) + latent.kv_rank * heads * latent.nope_head_size
    return of_queries + of_keys + values * (latent.kv_rank + hidden)


def _keys_seen(shape: Architecture, length: int) -> float:
    """Twice the mean number of keys per query, summed over the layers: `length` without a window, because half of the scores are masked."""
    if shape.window is None:
        return float(len(_blocks(shape)) * length)
    size = min(shape.window.size, length)
    whole, rest = divmod(length, size)
    windowed = (whole * size**2 + rest**2) / length if shape.window.chunked else 2 * size - size**2 / length
    return sum(windowed if shape.has_window(layer) else length for layer in _blocks(shape))


def peak_tflops(device_name: str) -> float | None:
    """Peak TFLOP/s of a device; None if it is not in the table, in which case no MFU is printed."""
    return next((peak for name, peak in PEAK_TFLOPS.items() if name in device_name), None)


def step_numbers(
    shape: Architecture, training: Training, ranks: int, seconds: float, device_name: str, tokens: float | None = None
) -> dict[str, Any]:
    """Throughput of a step of `seconds`, averaged over all ranks. `tokens`: those of the step without padding; None if it has none."""
    per_rank = (tokens or training.tokens_per_step) / seconds / ranks
    peak = peak_tflops(device_name)
    mfu = per_rank * flops_per_token(shape, training.sequence_length) / (peak * 1e12) if peak else None
    return {
        "tokensPerSecondPerGpu": round(per_rank, 1),
        "mfu": round(mfu, 4) if mfu is not None else None,
        "stepSeconds": round(seconds, 4),
    }
