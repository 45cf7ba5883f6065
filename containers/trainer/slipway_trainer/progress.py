"""Progress lines of the runtime contract, and the numbers in them."""

import json
import sys
from typing import Any

from slipway_trainer.settings import Architecture, Training

#: Peak dense bf16 TFLOP/s by a part of the device's name (NVIDIA data sheets, without sparsity; retrieved 2026-11-20).
PEAK_TFLOPS = {"B300": 2250.0, "B200": 2250.0, "GB200": 2250.0, "H200": 989.4, "H100": 989.4, "A100": 312.0, "L40S": 362.0}


def say(event: str, **fields: Any) -> None:
    """One progress line, in one write."""
    kept = {name: value for name, value in fields.items() if value is not None}
    sys.stdout.write("slipway " + json.dumps({"event": event, **kept}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def flops_per_token(shape: Architecture, sequence_length: int) -> float:
    """Model FLOPs of one trained token: 6 (N_layers + V d) + 12 L d s, attention counted in full, recomputation not at all.

    Of a mixture of experts only the experts that a token visits count.
    """
    attention = shape.hidden_size * shape.head_size * (2 * shape.attention_heads + 2 * shape.kv_heads)
    mixtures = sum(shape.has_experts(layer) for layer in range(shape.layers))
    inner = mixtures * shape.experts_per_token * shape.expert_inner_size + (shape.layers - mixtures) * shape.ffn_hidden_size
    mlp = shape.hidden_size * inner * (3 if shape.gated_mlp else 2)
    matrices = shape.layers * attention + mlp + shape.vocabulary_size * shape.hidden_size
    return 6.0 * matrices + 12.0 * shape.attention_heads * shape.head_size * _keys_seen(shape, sequence_length)


def _keys_seen(shape: Architecture, length: int) -> float:
    """Twice the keys that a query sees in the mean, summed over the layers: `length` without a window, as half the scores are masked."""
    window = min(shape.window.size, length) if shape.window is not None else length
    seen = 2 * window - window**2 / length
    return sum(seen if shape.has_window(layer) else length for layer in range(shape.layers))


def peak_tflops(device_name: str) -> float | None:
    """Peak of a device; None for one that is not in the table, and then no MFU is printed."""
    return next((peak for name, peak in PEAK_TFLOPS.items() if name in device_name), None)


def step_numbers(shape: Architecture, training: Training, ranks: int, seconds: float, device_name: str) -> dict[str, Any]:
    """Throughput of one step that took `seconds`, averaged over all ranks."""
    tokens = training.tokens_per_step
    per_rank = tokens / seconds / ranks
    peak = peak_tflops(device_name)
    mfu = per_rank * flops_per_token(shape, training.sequence_length) / (peak * 1e12) if peak else None
    return {
        "tokensPerSecondPerGpu": round(per_rank, 1),
        "mfu": round(mfu, 4) if mfu is not None else None,
        "stepSeconds": round(seconds, 4),
    }
