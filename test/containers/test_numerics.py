"""The numerics table: its checks see a difference, and docs/numerics.md is what they write."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fake_world import REPOSITORY

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

NUMERICS = str(REPOSITORY / "bench/numerics")


@pytest.fixture(autouse=True)
def numerics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its modules, which have short names, are there for one test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(NUMERICS)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(NUMERICS):
            del sys.modules[name]


def test_one_changed_weight_shows_in_logits_and_gradients(tmp_path: Path) -> None:
    import one_process
    from models import pair

    ours, theirs = pair({}, tmp_path, scale=8.0)
    tokens = one_process.random_tokens(65)
    differences = []
    for change in (0.0, 0.01):
        with torch.no_grad():
            ours.blocks["1"].attention.q_proj.weight[0, 0] += change
            differences.append((ours(tokens) - theirs(tokens).logits).abs().max().item())
    assert differences[0] <= one_process.LOGITS < differences[1]

    for logits in (ours(tokens[:, :-1]), theirs(tokens[:, :-1]).logits):
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
    assert one_process.gradient_difference(ours, theirs, tmp_path) > one_process.GRADIENTS


def test_a_difference_beyond_its_tolerance_does_not_hold() -> None:
    from row import Figure, Row

    from runs import differences

    row = Row("20 steps", "shard 2", differences([(1.0, 2.0), (1.0, 2.0)], [(1.0, 2.0), (1.1, 2.0)]))
    assert not row.holds and row.figures["loss"].measured == pytest.approx(0.1)
    assert replace(row, figures={"loss": Figure(1e-6, 1e-5)}).holds


def test_the_page_says_what_was_measured_and_every_figure_on_it_holds() -> None:
    from models import FAMILIES, TODAY
    from page import page
    from row import Figure, Row

    from runs import CONTINUED, DENSE, DENSE_OF_TODAY, EXPERTS, MIXTURES_OF_TODAY

    written = page([Row("20 steps", "shard 2", {"loss": Figure(2.4e-7, 1e-5)})], "2026-11-22", {"torch": "2.15.0"})
    assert "| shard 2 | 2.4e-07 | 1e-05 |" in written and "torch 2.15.0" in written
    text = (REPOSITORY / "docs/numerics.md").read_text()
    assert text.split("\n## ")[0].splitlines()[4:] == written.split("\n## ")[0].splitlines()[4:], "run npm run docs:numerics"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ") and "e-" in line]
    names = {row[0] for row in rows}
    assert {name for name, _ranks, _changes in (*DENSE, *EXPERTS)} <= names
    assert {*FAMILIES} <= names, "gradients and import of every family"
    for family, model in TODAY.items():
        layouts = MIXTURES_OF_TODAY if "num_experts_per_tok" in model else DENSE_OF_TODAY
        assert {f"{family}, {layout}" for layout in layouts} <= names, family
    assert {f"{CONTINUED[0]}, then {name}" for name in CONTINUED} <= names
    for name, *figures, allowed in rows:
        limits = [float(limit) for limit in allowed.split(",")]
        assert all(float(figure) <= limit for figure, limit in zip(figures, limits, strict=True)), name
