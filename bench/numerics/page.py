"""docs/numerics.md from measured rows."""

from collections.abc import Mapping, Sequence

from row import Row

from runs import LEARNING_RATE

HEAD = """# The trainer's arithmetic beside transformers

Written by `npm run docs:numerics`, which ends with 1 when a difference is larger than its tolerance. Last run: {date}, {versions}, on a
CPU in float32 with gloo.

Every figure is the largest absolute difference. The models have three layers and a vocabulary of 257. Runs start from the same first
values, take 20 AdamW steps at a learning rate of {learning_rate} with clipping at 1.0, and go through the trainer's own entry point; the
reference is a plain loop around transformers' model, on whole batches, with torch's own AdamW, clipping and cross entropy. What runs on
GPUs only (NCCL, fused kernels, float8 and bfloat16 kernels) is not compared here. A zero means that both sides call the same operations in
the same order; a test changes one weight and sees the difference.
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
