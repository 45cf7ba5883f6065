"""Documents that share a row: each is computed as if it were alone."""

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from rank_world import trainer_job  # noqa: E402
from slipway_trainer.initialise import values_of  # noqa: E402
from slipway_trainer.model import Transformer, _positions_within  # noqa: E402
from slipway_trainer.settings import resolve_settings  # noqa: E402
from slipway_trainer.sharding import fill_all  # noqa: E402

LENGTHS = [[7, 12, 1, 4], [20, 4]]
LATENT = {"qRank": 24, "kvRank": 16, "nopeHeadSize": 8, "ropeHeadSize": 8, "valueHeadSize": 12}
SHAPES = {
    "grouped heads": {"attentionHeads": 4, "kvHeads": 2},
    "windows": {"slidingWindow": {"size": 5, "pattern": "alternate"}},
    "capped scores": {"logitSoftcap": {"attention": 2.0, "final": 3.0}},
    "capped scores in windows": {"logitSoftcap": {"attention": 2.0}, "slidingWindow": {"size": 5, "pattern": "all"}},
    "sinks": {"attentionSinks": True},
    "sinks in windows": {"attentionSinks": True, "slidingWindow": {"size": 5, "pattern": "alternate"}},
    "sinks and capped scores": {"attentionSinks": True, "logitSoftcap": {"attention": 2.0}},
    "latent attention": {"latentAttention": LATENT},
    "latent attention with sinks": {"latentAttention": LATENT, "attentionSinks": True},
    "chunks, layers without positions and temperature": {
        "unrotatedLayers": [1],
        "family": {"modelType": "", "attentionChunk": {"size": 5, "layers": [0]}, "attentionTemperature": {"scale": 0.5, "floor": 4}},
    },
    "experts": {"experts": 4, "expertsPerToken": 2},
    "scaled positions": {"ropeScaling": {"type": "yarn", "factor": 4.0, "originalMaxPositionEmbeddings": 8}},
}


def model_of(changes: dict) -> Transformer:
    settings = resolve_settings(trainer_job(model=changes), [], {})
    model = Transformer(settings.architecture)
    fill_all(model, values_of(settings.architecture.layers, 3, torch.device("cpu")))
    return model


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES.keys())
def test_a_document_in_a_row_has_the_logits_and_gradients_that_it_has_alone(changes: dict) -> None:
    model = model_of(changes)
    tokens = torch.randint(0, 200, (2, 24), generator=torch.Generator().manual_seed(1))
    documents = torch.tensor([[number for number, length in enumerate(row) for _ in range(length)] for row in LENGTHS])
    weights = torch.randn(2, 24, model.shape.vocabulary_size, generator=torch.Generator().manual_seed(2))

    together = model(tokens, documents_BL=documents)
    (together * weights).sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()

    for row, lengths in enumerate(LENGTHS):
        for part in torch.arange(24).split(lengths):
            alone = model(tokens[row : row + 1, part])
            torch.testing.assert_close(together[row : row + 1, part], alone, atol=1e-5, rtol=1e-5)
            (alone * weights[row : row + 1, part]).sum().backward()
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(gradient, parameter.grad, atol=1e-4, rtol=1e-4)


def test_one_document_is_what_a_row_without_documents_is() -> None:
    model = model_of({})
    tokens = torch.randint(0, 200, (1, 24), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(model(tokens, documents_BL=torch.zeros_like(tokens)), model(tokens), atol=1e-5, rtol=1e-5)


def test_positions_begin_anew_in_each_document() -> None:
    documents = torch.tensor([[5, 5, 5, 6, 7, 7]])
    assert _positions_within(documents).tolist() == [[[0, 1, 2, 0, 0, 1]]]
