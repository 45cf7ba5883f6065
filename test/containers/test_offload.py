"""Activations that wait on the host: gradients are the same, weights stay where they are, strides are those that compiled code asks for."""

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import nn  # noqa: E402

from slipway_trainer import recompute  # noqa: E402
from slipway_trainer.architecture import read_architecture  # noqa: E402
from slipway_trainer.further_tokens import Further  # noqa: E402
from slipway_trainer.model import Transformer  # noqa: E402
from slipway_trainer.recompute import Offload  # noqa: E402


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """What was copied to the host, however small."""
    found: list[torch.Tensor] = []
    copy = Offload._copied
    monkeypatch.setattr(recompute, "MIN_BYTES", 0)
    monkeypatch.setattr(Offload, "_copied", lambda self, tensor: (found.append(tensor), copy(self, tensor))[1])
    return found


def test_gradients_are_the_same_and_weights_are_not_copied(copied: list[torch.Tensor]) -> None:
    torch.manual_seed(3)
    layer = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
    x = torch.randn(4, 8)
    layer(x).square().sum().backward()
    plain = [parameter.grad.clone() for parameter in layer.parameters()]
    layer.zero_grad()
    with Offload(torch.device("cpu")).of(layer):
        loss = layer(x).square().sum()
    loss.backward()
    assert all(torch.equal(one, other.grad) for one, other in zip(plain, layer.parameters(), strict=True))
    addresses = {parameter.untyped_storage().data_ptr() for parameter in layer.parameters()}
    assert copied and not addresses & {tensor.untyped_storage().data_ptr() for tensor in copied}


def test_weights_that_come_later_than_the_rest_of_their_layer_are_not_copied(copied: list[torch.Tensor]) -> None:
    """As FSDP gathers the experts of a layer, which it shards apart."""
    layer = nn.Sequential(nn.Linear(8, 16, bias=False), nn.GELU(), nn.Linear(16, 8, bias=False))
    late = layer[2].weight
    values = late.detach().clone()
    late.untyped_storage().resize_(0)

    def gather(*_: object) -> None:
        late.untyped_storage().resize_(values.untyped_storage().nbytes())
        late.data.copy_(values)

    layer[2].register_forward_pre_hook(gather)
    with Offload(torch.device("cpu")).of(layer):
        layer(torch.randn(4, 8, requires_grad=True)).sum().backward()
    addresses = {parameter.untyped_storage().data_ptr() for parameter in layer.parameters()}
    assert copied and not addresses & {tensor.untyped_storage().data_ptr() for tensor in copied}


def test_a_tensor_comes_back_with_its_strides(copied: list[torch.Tensor]) -> None:
    turned = torch.randn(2, 3, 5, requires_grad=True).transpose(1, 2)
    with Offload(torch.device("cpu")).of(nn.Identity()):
        result = turned.sin()
    (kept,) = copied
    assert kept.stride() == (15, 1, 5)
    assert result.grad_fn._saved_self.stride() == kept.stride()


def test_an_expanded_tensor_stays(copied: list[torch.Tensor]) -> None:
    wide = torch.ones(1, 4, requires_grad=True).expand(3, 4)
    with Offload(torch.device("cpu")).of(nn.Identity()):
        wide.sin().sum().backward()
    assert copied == []


def test_modules_that_predict_further_tokens_offload_theirs(copied: list[torch.Tensor]) -> None:
    heads = {"attentionHeads": 2, "kvHeads": 2, "headSize": 8}
    wanted = heads | {"layers": 1, "hiddenSize": 16, "ffnHiddenSize": 32, "vocabularySize": 11, "mtpLayers": 1}
    shape = read_architecture(wanted, wanted.__getitem__, [])
    torch.manual_seed(3)
    model, tokens = Transformer(shape), torch.arange(8)[None]
    model.around = Offload(torch.device("cpu")).of

    def loss(head: nn.Module, x_BLD: torch.Tensor) -> torch.Tensor:
        return head(x_BLD).square().mean()

    model(tokens, loss)
    without = len(copied)
    model(tokens, loss, further=[Further(tokens, loss)]).backward()
    assert len(copied) - without > 2 * without, "the module's block, and what joins it to the model"
    offloaded = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    model.around = None
    model(tokens, loss, further=[Further(tokens, loss)]).backward()
    assert all(torch.equal(one, other.grad) for one, other in zip(offloaded, model.parameters(), strict=True))
