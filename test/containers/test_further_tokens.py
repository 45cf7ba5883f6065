"""Modules that predict further tokens, against a plain implementation of section 2.2 of DeepSeek-V3's report with the layers of
transformers: losses of steps in every layout, import and export under the published names."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plain_loop import history_of
from rank_world import events, run_ranks, trainer_job

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

import torch.nn.functional as F  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from test_model_parity import answers, config_of  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402

from slipway_trainer.architecture import read_architecture  # noqa: E402
from slipway_trainer.further_tokens import shifted  # noqa: E402
from slipway_trainer.loss import IGNORED  # noqa: E402
from slipway_trainer.model import Transformer  # noqa: E402
from slipway_trainer.progress import flops_per_token  # noqa: E402

LENGTH, STEPS, WEIGHT = 32, 4, 0.3
MODULES = {"deepseek_v3": 1, "qwen3": 2}
LAYOUTS = {
    "one rank": (1, {}),
    "sharded": (2, {}),
    "sequence split": (2, {"parameters": {"context_parallel_degree": 2}}),
    "FSDP1": (2, {"arguments": ["--backend", "fsdp1"]}),
    "recomputed": (1, {"training": {"activationCheckpointing": "full"}, "arguments": ["--recompute-layers", "2"]}),
    "micro-batches of two": (2, {"training": {"microBatchSize": 2}}),
}
CASES = [(name, layout) for name in MODULES for layout in LAYOUTS] + [("deepseek_v3", "experts on other ranks")]
LAYOUTS["experts on other ranks"] = (2, {"parameters": {"expert_parallel_degree": 2}})


class Plain(nn.Module):
    """A model of transformers with so many layers more than it computes: those are the blocks of the modules."""

    def __init__(self, name: str) -> None:
        super().__init__()
        torch.manual_seed(3)
        config = config_of(name)
        self.layers, count = config.num_hidden_layers, MODULES[name]
        config.num_hidden_layers += count
        if getattr(config, "layer_types", None):
            config.layer_types = ["full_attention"] * config.num_hidden_layers
        config._attn_implementation = "sdpa"
        self.whole = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        norm = type(self.whole.model.norm)
        sizes = [config.hidden_size, config.rms_norm_eps]
        self.parts = nn.ModuleList(
            nn.ModuleDict({"enorm": norm(*sizes), "hnorm": norm(*sizes), "norm": norm(*sizes),
                           "eh_proj": nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)})
            for _ in range(count)
        )  # fmt: skip
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.05)
        config.num_hidden_layers = self.layers
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[: self.layers]

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """L = main + weight / D * sum of the modules', each over T positions (equations 21 to 25)."""
        count, hidden = tokens.size(1), self.whole.model(input_ids=tokens).last_hidden_state
        loss = F.cross_entropy(self.whole.lm_head(hidden).flatten(0, 1), targets.flatten())
        for number, part in enumerate(self.parts):
            k = number + 1
            embedded = self.whole.model.embed_tokens(tokens[:, k:])
            x = part["eh_proj"](torch.cat((part["enorm"](embedded), part["hnorm"](hidden[:, : count - k])), dim=-1))
            positions = torch.arange(count - k)[None]
            turned = self.whole.model.rotary_emb(x, positions)
            x = self.whole.model.layers[self.layers + number](x, position_embeddings=turned, position_ids=positions, attention_mask=None)
            hidden = part["norm"](x[0] if isinstance(x, tuple) else x)
            sums = F.cross_entropy(self.whole.lm_head(hidden).flatten(0, 1), targets[:, k:].flatten(), reduction="sum")
            loss = loss + WEIGHT / len(self.parts) * sums / targets.numel()
        return loss

    def publish(self, folder: Path) -> None:
        """As DeepSeek-V3's files are: the modules behind the layers, embedding and head repeated."""
        self.whole.save_pretrained(folder)
        tensors = load_file(folder / "model.safetensors")
        for number, part in enumerate(self.parts):
            block = f"model.layers.{self.layers + number}"
            found = {"enorm": part["enorm"], "hnorm": part["hnorm"], "eh_proj": part["eh_proj"], "shared_head.norm": part["norm"]}
            tensors |= {f"{block}.{name}.weight": module.weight.detach().clone() for name, module in found.items()}
            tensors[f"{block}.embed_tokens.weight"] = self.whole.model.embed_tokens.weight.detach().clone()
            tensors[f"{block}.shared_head.head.weight"] = self.whole.lm_head.weight.detach().clone()
        save_file(tensors, folder / "model.safetensors")


def job_of(name: str, **changes: Any) -> dict[str, Any]:
    training = {"sequenceLength": LENGTH, "steps": STEPS} | changes.pop("training", {})
    return trainer_job(training=training, weights="weights", **changes) | {"model": answers()[name]["shape"] | {"mtpLayers": MODULES[name]}}


@functools.cache
def wanted(name: str, shards: Path, folder: Path) -> list[tuple[float, float]]:
    """Losses and gradient norms of the plain implementation, whose first weights this writes to a folder."""
    plain = Plain(name)
    plain.publish(folder)
    return history_of(plain, plain, shards, job_of(name))


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights")


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("name", "layout"), CASES)
def test_steps_equal_those_of_the_plain_implementation(tmp_path: Path, shards: Path, weights: Path, name: str, layout: str) -> None:
    expected = wanted(name, shards, weights / name)
    ranks, changes = LAYOUTS[layout]
    code, output = run_ranks(tmp_path, ranks, job_of(name, **changes), {"train": shards, "weights": weights / name})
    assert code == 0, output
    steps = events(output, "step")
    assert [event["loss"] for event in steps] == pytest.approx([loss for loss, _norm in expected], abs=2e-5)
    assert [event["gradientNorm"] for event in steps] == pytest.approx([norm for _loss, norm in expected], rel=1e-3)


def test_exports_stand_behind_the_layers_and_transformers_leaves_them_out(tmp_path: Path, shards: Path, weights: Path) -> None:
    wanted("deepseek_v3", shards, weights / "deepseek_v3")
    folder = weights / "deepseek_v3"
    job = job_of("deepseek_v3", training={"steps": 1}, arguments=["--learning-rate", "0", "--export-weights"])
    code, output = run_ranks(tmp_path, 2, job, {"train": shards, "weights": folder})
    assert code == 0, output
    given, found = load_file(folder / "model.safetensors"), load_file(tmp_path / "model/model.safetensors")
    assert {name: tensor.shape for name, tensor in found.items()} == {name: tensor.shape for name, tensor in given.items()}
    assert all(torch.equal(tensor, given[name]) for name, tensor in found.items())
    tokens = torch.randint(0, 257, (1, LENGTH), generator=torch.Generator().manual_seed(1))
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32)
    shape = read_architecture(job["model"], job["model"].__getitem__, [])
    assert len(loaded.model.layers) == shape.layers and sum(map(torch.numel, loaded.parameters())) < sum(map(torch.numel, found.values()))
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert torch.equal(loaded(tokens).logits, plain(tokens).logits)


def test_fails_for_weights_without_the_modules_and_for_modules_that_the_run_does_not_have(
    tmp_path: Path, shards: Path, weights: Path
) -> None:
    wanted("deepseek_v3", shards, weights / "deepseek_v3")
    channels = {"train": shards, "weights": weights / "deepseek_v3"}
    for modules, message in ((2, "no model.layers.5"), (0, "model.layers.4.eh_proj.weight without a place")):
        job = job_of("deepseek_v3")
        code, output = run_ranks(tmp_path / str(modules), 1, job | {"model": job["model"] | {"mtpLayers": modules}}, channels)
        assert code == 77 and message in output, output


def test_an_evaluation_is_of_the_next_token_alone(tmp_path: Path, shards: Path) -> None:
    found = []
    for modules, arguments in ((1, ["--mtp-loss", "0.3"]), (0, [])):
        job = trainer_job(
            model={"mtpLayers": modules}, training={"steps": 1}, arguments=["--learning-rate", "0", "--eval-channel", "train", *arguments]
        )
        code, output = run_ranks(tmp_path / str(modules), 1, job, {"train": shards})
        assert code == 0, output
        found.append((events(output, "step")[0]["loss"], events(output, "eval")[0]["loss"]))
    (with_modules, evaluated), (without, same) = found
    assert evaluated == pytest.approx(same, abs=1e-5)
    assert with_modules - without == pytest.approx(0.3 * without, rel=0.1), "as large as the first, before anything is learned"


def brute_force(tokens: list[int], targets: list[int], documents: list[int], k: int) -> tuple[list[int | None], list[int]]:
    seen: Callable[[int], bool] = lambda i: i + k < len(tokens)  # noqa: E731
    ahead = [tokens[i + k] if seen(i) else None for i in range(len(tokens))]
    return ahead, [targets[i + k] if seen(i) and documents[i + k] == documents[i] else IGNORED for i in range(len(tokens))]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_tokens_and_targets_move_within_their_documents(k: int) -> None:
    tokens, targets, documents = [5, 6, 7, 8, 9, 10], [6, 7, IGNORED, 9, 10, 11], [0, 0, 0, 1, 1, 1]
    for of_row in (documents, [0] * 6):
        given = None if of_row is not documents else torch.tensor([of_row])
        ahead, wanted_targets = brute_force(tokens, targets, of_row, k)
        found_tokens, found_targets, outside = shifted(torch.tensor([tokens]), torch.tensor([targets]), k, given)
        assert found_targets.tolist() == [wanted_targets]
        inside = [place + k < len(tokens) and of_row[place + k] == of_row[place] for place in range(len(tokens))]
        assert outside.tolist() == [[not one for one in inside]]
        assert [token for token, one in zip(found_tokens[0].tolist(), ahead, strict=True) if one is not None] == [
            one for one in ahead if one is not None
        ]


def test_flops_count_every_matrix_of_the_modules() -> None:
    shape = answers()["deepseek_v3"]["shape"]
    found = {}
    for modules in (0, 1):
        read = read_architecture(shape | {"mtpLayers": modules}, shape.__getitem__, [])
        with torch.device("meta"):
            model = Transformer(read)
        matrices = sum(
            p.numel() for name, p in model.named_parameters() if p.dim() > 1 and ".experts." not in name and "router" not in name
        )
        matrices += sum(p.numel() for name, p in model.named_parameters() if ".experts." in name) * read.experts_per_token // read.experts
        found[modules] = matrices, flops_per_token(read, LENGTH)
    (before, flops), (after, more) = found[0], found[1]
    layer = shape["layers"]
    scores = 6 * shape["attentionHeads"] * (20 + 10) * LENGTH
    assert more - flops == pytest.approx(6 * (after - before + 257 * 64) + scores), layer
