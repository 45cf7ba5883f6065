"""FlexAttention sees what the masks in memory see: the same mixed values for windows, chunks, documents, capped scores and sinks.

Compiled kernels need a GPU (npm run test:gpu); here PyTorch computes the same functions of positions one by one.
"""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer import flex  # noqa: E402
from slipway_trainer.architecture_parts import Window  # noqa: E402
from slipway_trainer.attend import attend  # noqa: E402
from slipway_trainer.masks import Masks, Places  # noqa: E402

ROWS, LENGTH, HEADS, KEY_HEADS, SIZE = 2, 96, 4, 2, 16
#: Three documents in each row, of other lengths in the second.
DOCUMENTS = torch.tensor([[0] * 20 + [1] * 50 + [2] * 26, [0] * 61 + [1] * 5 + [2] * 30])
PART = torch.cat((torch.arange(24, 48), torch.arange(48, 72)))


def within(documents_BL: torch.Tensor) -> torch.Tensor:
    """Positions that begin at 0 in each document, (B, 1, L)."""
    found = torch.zeros_like(documents_BL)
    for row, numbers in enumerate(documents_BL.tolist()):
        for place in range(1, LENGTH):
            found[row, place] = found[row, place - 1] + 1 if numbers[place] == numbers[place - 1] else 0
    return found[:, None]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.nn.attention import flex_attention as theirs

    monkeypatch.setattr(theirs, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    monkeypatch.setattr(flex, "_compiled", lambda: (theirs.flex_attention, theirs.create_block_mask))


@pytest.mark.skipif(not flex._is_here.__wrapped__(), reason="needs the FlexAttention of PyTorch 2.11")
@pytest.mark.parametrize("documents", [False, True], ids=["one document", "documents"])
@pytest.mark.parametrize("part", [False, True], ids=["all queries", "part of them"])
@pytest.mark.parametrize("window", [None, Window(17, "all"), Window(32, "all", chunked=True)], ids=["whole", "window", "chunks"])
@pytest.mark.parametrize(("softcap", "sinks"), [(None, False), (3.0, False), (None, True), (3.0, True)])
def test_flex_attention_is_attention_with_the_mask(
    eager: None, monkeypatch: pytest.MonkeyPatch, documents: bool, part: bool, window: Window | None, softcap: float | None, sinks: bool
) -> None:
    random = torch.Generator().manual_seed(5)
    numbers = DOCUMENTS if documents else None
    queries_S = PART if part else None
    q = torch.randn(ROWS, HEADS, PART.numel() if part else LENGTH, SIZE, generator=random)
    k, v = (torch.randn(ROWS, KEY_HEADS, LENGTH, SIZE, generator=random) for _ in range(2))
    more = {"softcap": softcap, "sinks_H": torch.randn(HEADS, generator=random) if sinks else None}
    shape = SimpleNamespace(head_size=SIZE, latent=None, window=window, attention_softcap=softcap, attention_sinks=sinks)
    positions = torch.arange(LENGTH) if numbers is None else within(numbers)
    places = Places(LENGTH, q.device, positions, queries_S, numbers)

    in_memory = Masks(shape).of(q.dtype, places)
    monkeypatch.setattr(flex, "suits", lambda *_: True)
    in_blocks = Masks(shape).of(q.dtype, places)
    for dense, blocks in zip(in_memory, in_blocks, strict=True):
        if part and dense is None:
            continue  # Context parallelism cuts causal attention without a mask by itself.
        assert torch.allclose(attend(q, k, v, dense, 0.25, **more), attend(q, k, v, blocks, 0.25, **more), atol=2e-5)


def test_masks_of_one_document_are_made_once(eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flex, "suits", lambda *_: True)
    shape = SimpleNamespace(head_size=SIZE, latent=None, window=Window(17, "all"), attention_softcap=None, attention_sinks=False)
    masks, places = Masks(shape), Places(LENGTH, torch.device("cpu"), torch.arange(LENGTH), None, None)
    first = masks.of(torch.float32, places)
    assert first[0] is None and first[1] is masks.of(torch.float32, places)[1]


def test_flex_attention_is_for_gpus_and_heads_that_its_kernels_take() -> None:
    assert not flex.suits(torch.device("cpu"), 64)
    assert not flex.suits(torch.device("cuda"), 64, 20)
