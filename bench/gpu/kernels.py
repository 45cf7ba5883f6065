"""Attention and experts at the sizes of real models: memory of scores that must never exist as a whole, and time of all experts in one
kernel beside a loop over them."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from case import Case, Found
from machine import GIB, Machine, lacks_gpu

LENGTH, HEADS, KV_HEADS, SIZE = 8192, 32, 8, 128
#: All scores of a layer in bfloat16 would be 4 GiB; what a fused kernel may take beside its inputs, masks included.
MAX_GIB = 2.0


def _milliseconds(work: Callable[[], Any], times: int = 5) -> float:
    import torch

    work()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / times


def _attention(kind: str) -> tuple[float, float]:
    """Milliseconds of forward and backward, and GiB beside the inputs."""
    import torch

    from slipway_trainer.architecture_parts import Window
    from slipway_trainer.attend import attend
    from slipway_trainer.masks import Masks, Places

    device = torch.device("cuda")
    latent = kind == "latent"
    sizes = ((HEADS, SIZE + 64), (HEADS, SIZE + 64), (HEADS, SIZE)) if latent else ((HEADS, SIZE), (KV_HEADS, SIZE), (KV_HEADS, SIZE))
    q, k, v = (torch.randn(1, heads, LENGTH, size, device=device, dtype=torch.bfloat16, requires_grad=True) for heads, size in sizes)
    shape = SimpleNamespace(head_size=sizes[0][1], latent=None, window=None, attention_softcap=None, attention_sinks="sinks" in kind)
    if "window" in kind:
        shape.window = Window(128, "all", chunked=False)
    positions = torch.arange(LENGTH, device=device)
    numbers = positions[None] // 1000 if kind == "documents" else None
    within = positions if numbers is None else (positions % 1000)[None, None]
    mask = Masks(shape).of(torch.bfloat16, Places(LENGTH, device, within, None, numbers))["window" in kind]
    more = {"sinks_H": torch.zeros(HEADS, device=device, requires_grad=True)} if "sinks" in kind else {}
    if kind == "capped":
        shape.attention_softcap = more["softcap"] = 50.0
        mask = Masks(shape).of(torch.bfloat16, Places(LENGTH, device, within, None, None))[0]
    gradient = torch.randn(1, HEADS, LENGTH, SIZE, device=device, dtype=torch.bfloat16)

    def work() -> None:
        attend(q, k, v, mask, SIZE**-0.5, **more).backward(gradient)

    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    took = _milliseconds(work)
    return took, (torch.cuda.max_memory_allocated() - before) / GIB


def attention(_machine: Machine, _folder: Path) -> Found:
    found = {kind: _attention(kind) for kind in ("causal", "documents", "window", "sinks", "window and sinks", "capped", "latent")}
    figures = ", ".join(f"{kind} {took:.1f} ms {gib:.1f} GiB" for kind, (took, gib) in found.items())
    return Found(figures, all(gib <= MAX_GIB for _, gib in found.values()))


#: (experts, visited, hidden size, inner size): of Mixtral 8x7B, of Qwen3 30B-A3B, of GPT-OSS 20B.
MIXTURES = {"mixtral": (8, 2, 4096, 14336), "qwen3-30b-a3b": (128, 8, 2048, 768), "gpt-oss-20b": (32, 4, 2880, 2880)}


def _experts(count: int, visited: int, hidden: int, inner: int, bias: bool) -> tuple[float, float, float, bool]:
    """Milliseconds of all experts in one kernel and one after the other, the largest relative difference of results and gradients, and
    whether the trainer takes the kernel."""
    import torch

    from slipway_trainer import grouped
    from slipway_trainer.feed_forward import Experts, FeedForward

    torch.manual_seed(1)
    with torch.device("cuda"):
        activation = "clamped-swiglu" if bias else None
        experts = Experts({str(n): FeedForward(hidden, inner, True, activation, bias) for n in range(count)}).to(torch.bfloat16)
    rows_RD = torch.randn(LENGTH * visited, hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    # Nobody visits the last one: its gradients must be zeros all the same.
    visits_H = torch.randint(0, count - 1, (LENGTH * visited,), device="cuda").bincount(minlength=count)
    gradient_RD = torch.randn_like(rows_RD)

    def work() -> tuple[torch.Tensor, ...]:
        rows_RD.grad = None
        experts.zero_grad()
        result_RD = experts(rows_RD, visits_H)
        result_RD.backward(gradient_RD)
        first, *_, last = experts.children()
        return result_RD.detach(), rows_RD.grad, first.up_proj.weight.grad, last.up_proj.weight.grad

    chosen, suits, found = grouped.suits(rows_RD, list(experts.children())), grouped.suits, []
    try:
        for together in (True, False):
            grouped.suits = lambda *_, together=together: together
            found.append((_milliseconds(work), work()))
    finally:
        grouped.suits = suits
    (together, results), (alone, others) = found
    off = max(((one - other).norm() / other.norm().clamp(min=1e-6)).item() for one, other in zip(results, others, strict=True))
    return together, alone, off, chosen


def experts(_machine: Machine, _folder: Path) -> Found:
    found = {name: _experts(*sizes, bias=name.startswith("gpt-oss")) for name, sizes in MIXTURES.items()}
    parts = [f"{name} {one:.1f} ms (a loop {other:.1f}), off {off:.0e}" for name, (one, other, off, _) in found.items()]
    holds = all(off < 0.01 and chosen == (one < other) for one, other, off, chosen in found.values())
    return Found(", ".join(parts), holds)


CASES = (
    Case("attention at 8,192 tokens, 32 heads", "scores are never in memory: at most 2 GiB", lambda m: lacks_gpu(m, 40), attention),
    Case(
        "all experts in one kernel",
        "results of a loop over them, 1 %, and taken where it is faster",
        lambda m: lacks_gpu(m, 40, (9, 0)) or ("" if m.capability == (9, 0) else "the trainer takes the kernel on Hopper alone"),
        experts,
    ),
)
