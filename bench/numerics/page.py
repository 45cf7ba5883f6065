"""docs/numerics.md from measured rows."""

from collections.abc import Mapping, Sequence

from row import Row

from runs import LEARNING_RATE

HEAD = """# Numerical comparison of the trainer with transformers

Written by `npm run docs:numerics`, which exits with 1 if a difference exceeds its tolerance. Last run: {date}, {versions}, on a
CPU in float32 with gloo.

Every value is the maximum absolute difference. The models have three layers and a vocabulary of 257. Runs start from the same initial
weights, take 20 AdamW steps at a learning rate of {learning_rate} with clipping at 1.0, and use the entry point of the trainer.
The reference is a plain training loop with the transformers model, full batches, and AdamW, clipping and cross entropy of PyTorch. Code that
runs only on GPUs (NCCL, fused kernels, float8 and bfloat16 kernels) is not compared. A zero means that both sides call the same operations
in the same order; a test changes one weight and checks that the difference is detected.
"""


def page(rows: Sequence[Row], date: str, versions: Mapping[str, str]) -> str:
    """The page: one table a section, in the order of the rows."""
    software = ", ".join(f"{name} {version}" for name, version in versions.items())
    text = HEAD.format(date=date, learning_rate=LEARNING_RATE, versions=software)
    for section in dict.fromkeys(row.section for row in rows):
        held = [row for row in rows if row.section == section]
        names = list(held[0].figures)
        text += f"\n## {section}\n\n| | {' | '.join(names)} | tolerance |\n|---|{'---|' * (len(names) + 1)}\n"
        for row in held:
            figures = [f"{row.figures[name].measured:.1e}" for name in names]
            limits = ", ".join(f"{row.figures[name].allowed:.0e}" for name in names)
            text += f"| {row.name} | {' | '.join(figures)} | {limits} |\n"
    return text
