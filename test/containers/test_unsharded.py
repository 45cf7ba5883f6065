"""Mixed precision without FSDP: the numbers of an explicit cast and of FSDP, names that stay, and no copies of parameters for the backward
pass."""

import copy
from pathlib import Path
from types import FunctionType

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch._functorch.partitioners import min_cut_rematerialization_partition  # noqa: E402

from rank_world import losses_of, trainer_job, write_shards  # noqa: E402
from slipway_trainer.architecture import read_architecture  # noqa: E402
from slipway_trainer.loss import loss_over  # noqa: E402
from slipway_trainer.model import Transformer  # noqa: E402
from slipway_trainer.unsharded import compute_in  # noqa: E402

HEADS = {"attentionHeads": 4, "kvHeads": 2, "headSize": 8}
SHAPE = HEADS | {"layers": 2, "hiddenSize": 32, "ffnHiddenSize": 48, "vocabularySize": 64, "gatedMlp": True}


def model_of(**changes) -> Transformer:
    raw = SHAPE | changes
    torch.manual_seed(3)
    return Transformer(read_architecture(raw, raw.__getitem__, []))


def casting(model: Transformer, dtype: torch.dtype, again: bool = True) -> Transformer:
    for module in model.modules():
        compute_in(dtype, module, again)
    return model


def loss_of(model: Transformer) -> torch.Tensor:
    tokens_BL = torch.randint(0, 64, (2, 17), generator=torch.Generator().manual_seed(1))
    return model(tokens_BL[:, :-1], loss_over(tokens_BL[:, 1:], 4, 0.0))


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("changes", [{"tiedEmbeddings": False}, {"tiedEmbeddings": True}, {"attentionBias": True, "tiedEmbeddings": False}])
def test_losses_and_gradients_are_those_of_a_model_in_bf16(changes: dict, again: bool) -> None:
    model = model_of(**changes)
    plain = copy.deepcopy(model).to(torch.bfloat16)
    expected = loss_of(plain)
    expected.backward()
    found = loss_of(casting(model, torch.bfloat16, again))
    found.backward()
    assert found.detach().item() == expected.detach().item()
    gradients = {name: parameter.grad for name, parameter in plain.named_parameters()}
    assert {name for name, _ in model.named_parameters()} == set(gradients)
    for name, parameter in model.named_parameters():
        assert parameter.dtype == parameter.grad.dtype == torch.float32
        torch.testing.assert_close(parameter.grad, gradients[name].float(), atol=4e-3, rtol=0.02)


def test_in_float32_nothing_changes() -> None:
    model = model_of(tiedEmbeddings=False)
    expected = loss_of(copy.deepcopy(model))
    assert loss_of(casting(model, torch.float32)).item() == expected.item()


@pytest.mark.parametrize("again", [True, False])
def test_compiled_layers_save_no_copies_of_parameters_that_are_cast_again(again: bool) -> None:
    model = casting(model_of(tiedEmbeddings=False), torch.bfloat16, again)
    block, copies = model.blocks["0"], []
    shapes = {parameter.shape for parameter in block.parameters() if parameter.dim() == 2}

    def forward(graph: torch.fx.GraphModule, _inputs: list) -> torch.fx.GraphModule:
        saved = [node.meta["val"] for node in graph.graph.output_node().args[0] if node.op != "placeholder"]
        copies.extend(one.shape for one in saved if one.dim() == 2 and {one.shape, one.shape[::-1]} & shapes)
        return graph

    backend = aot_autograd(fw_compiler=forward, bw_compiler=lambda graph, _: graph, partition_fn=min_cut_rematerialization_partition)
    x_BLD = torch.ones(2, 5, 32, dtype=torch.bfloat16, requires_grad=True)
    tables = model._tables(torch.zeros(2, 5, dtype=torch.long), None, torch.bfloat16)
    torch.compile(block, backend=backend)(x_BLD, *tables).sum().backward()
    assert bool(copies) != again


def test_one_graph_serves_all_layers_in_training_and_evaluation() -> None:
    graphs, calls = [], []

    def backend(graph: torch.fx.GraphModule, _inputs: list):
        graphs.append(graph)
        return lambda *arguments: calls.append(graph) or graph(*arguments)

    model = casting(model_of(layers=12, tiedEmbeddings=False), torch.bfloat16)
    for block in model.all_blocks():
        block.compile(backend=backend)
    loss_of(model).backward()
    assert (len(graphs), len(calls)) == (1, 12)
    with torch.no_grad():
        loss_of(model)
    assert (len(graphs), len(calls)) == (2, 24)


def test_getters_are_functions_which_older_versions_of_pytorch_compile() -> None:
    model = casting(model_of(tiedEmbeddings=False), torch.bfloat16)
    getters = {member.fget for module in model.modules() for member in vars(type(module)).values() if isinstance(member, property)}
    assert getters and all(isinstance(getter, FunctionType) for getter in getters)


def test_layers_keep_their_kind_and_their_state() -> None:
    model = model_of(tiedEmbeddings=True)
    names, state = [name for name, _ in model.named_parameters()], {name: value.clone() for name, value in model.state_dict().items()}
    casting(model, torch.bfloat16)
    assert [name for name, _ in model.named_parameters()] == names
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert isinstance(model.head, torch.nn.Linear) and type(model.head).__name__ == "Linear"
    assert model.head.weight.dtype == torch.bfloat16 and model.embed.weight.dtype == torch.float32


WAYS = {
    "tied": {"model": {"tiedEmbeddings": True}},
    "multi-token prediction": {"model": {"mtpLayers": 1}},
    "offload": {"training": {"activationOffload": True, "activationCheckpointing": "full"}},
    "adapters": {"training": {"lora": {"rank": 4, "alpha": 8, "targets": ["q_proj", "down_proj"]}}},
    "groups of layers": {"training": {"activationCheckpointing": "full"}, "arguments": ["--recompute-layers", "2"]},
}


def job_of(way: str, precision: str, **changes) -> dict:
    more = copy.deepcopy(WAYS[way])
    more["training"] = more.get("training", {}) | {"precision": precision}
    return trainer_job(**more, **changes)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("way", WAYS)
def test_one_rank_has_the_losses_of_two_within_fsdp(tmp_path: Path, way: str) -> None:
    channels, job = {"train": write_shards(tmp_path / "tokens", 60_000)}, job_of(way, "fp32")
    assert losses_of(tmp_path / "one", 1, job, channels) == pytest.approx(losses_of(tmp_path / "two", 2, job, channels), abs=1e-4)


@pytest.mark.slow
@pytest.mark.drawn(2)
@pytest.mark.parametrize(("precision", "limit"), [("fp32", 1e-4), ("bf16", 0.02)])
@pytest.mark.parametrize("way", WAYS)
def test_one_compiled_rank_has_the_losses_of_one_that_is_not(tmp_path: Path, way: str, precision: str, limit: float) -> None:
    channels = {"train": write_shards(tmp_path / "tokens", 60_000)}
    compiled = losses_of(tmp_path / "compiled", 1, job_of(way, precision, parameters={"compile": True}), channels)
    assert compiled == pytest.approx(losses_of(tmp_path / "eager", 1, job_of(way, precision), channels), abs=limit)
