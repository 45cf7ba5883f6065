"""Sample generations: their tokens are those of `generate` of transformers, in every layout, and their prompts are of the data."""

import functools
from pathlib import Path
from typing import Any

import chat_data as data
import pytest
from test_fine_tuning import CONVERSATIONS, PLAIN_CHAT, PREFERENCES

from rank_world import events, run_ranks, trainer_job

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

from test_model_parity import answers, theirs_of  # noqa: E402

from slipway_trainer.exits import InvalidRun  # noqa: E402
from slipway_trainer.samples import find_detokenizer  # noqa: E402
from slipway_trainer.shard_format import read_index  # noqa: E402
from slipway_trainer.sources import TokenStream  # noqa: E402

LENGTH, PROMPT, TOKENS, END = 96, 8, 24, 256
ASKED = ["--samples", "3", "--sample-prompt-tokens", str(PROMPT), "--sample-tokens", str(TOKENS)]
#: Nothing is learned: the samples are those of the starting weights.
STILL = ["--learning-rate", "0", *ASKED]
DENSE = {
    "one rank": (1, {}),
    "sharded": (2, {}),
    "replicated": (2, {"library": "ddp"}),
    "matrices split": (2, {"parameters": {"tensor_parallel_degree": 2}}),
    "sequence split": (2, {"parameters": {"context_parallel_degree": 2}}),
    "both split": (4, {"parameters": {"context_parallel_degree": 2, "tensor_parallel_degree": 2}}),
    "FSDP1, sequence split": (2, {"parameters": {"context_parallel_degree": 2}, "arguments": ["--backend", "fsdp1"]}),
}
LAYOUTS = {
    "llama, biases": DENSE | {"compiled": (1, {"parameters": {"compile": True}})},
    "qwen3": {name: DENSE[name] for name in ("one rank", "matrices split", "sequence split")},
    "qwen3_moe": {
        "one rank": (1, {}),
        "experts on other ranks": (2, {"parameters": {"expert_parallel_degree": 2}}),
        "sharded": (2, {}),
        "matrices split": DENSE["matrices split"],
    },
}


def prompts(shards: Path) -> list[list[int]]:
    """What the samples begin with: the data's own first tokens."""
    stream = TokenStream(read_index(shards), LENGTH)
    return [stream.sample(number)[:PROMPT].tolist() for number in range(3)]


def generated(theirs: Any, prompt: list[int]) -> list[int]:
    with torch.no_grad():
        found = theirs.generate(torch.tensor([prompt]), max_new_tokens=TOKENS, do_sample=False, eos_token_id=END, pad_token_id=0)
    return found[0, len(prompt) :].tolist()


@functools.cache
def wanted(name: str, shards: Path, folder: Path) -> list[list[int]]:
    """What transformers generates with the random weights of a family, which this writes to a folder."""
    theirs = theirs_of(name)
    theirs.save_pretrained(folder)
    return [generated(theirs, prompt) for prompt in prompts(shards)]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights")


def sampled(tmp_path: Path, ranks: int, job: dict[str, Any], **channels: Path) -> list[dict[str, Any]]:
    code, output = run_ranks(tmp_path, ranks, job, channels)
    assert code == 0, output
    return events(output, "sample")


def case(name: str, layout: str) -> Any:
    """Compilation takes as long as all other cases."""
    return pytest.param(name, layout, marks=[pytest.mark.slow] if layout == "compiled" else [])


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("name", "layout"), [case(name, layout) for name, found in LAYOUTS.items() for layout in found])
def test_greedy_tokens_equal_those_of_transformers(tmp_path: Path, shards: Path, weights: Path, name: str, layout: str) -> None:
    expected = wanted(name, shards, weights / name)
    assert len({tuple(tokens) for tokens in expected}) == 3, "prompts with the same continuation would show little"
    ranks, changes = LAYOUTS[name][layout]
    changes = changes | {"arguments": [*STILL, *changes.get("arguments", [])]}
    job = trainer_job(training={"sequenceLength": LENGTH, "steps": 1}, weights="weights", **changes) | {"model": answers()[name]["shape"]}
    found = sampled(tmp_path, ranks, job, train=shards, weights=weights / name)
    assert [event["tokens"] for event in found] == expected


def test_samples_come_with_every_evaluation_and_change_nothing_of_the_training(tmp_path: Path, shards: Path) -> None:
    losses = {}
    for name, arguments in (("with", ["--eval-every-steps", "2", *ASKED]), ("without", [])):
        code, output = run_ranks(
            tmp_path / name, 2, trainer_job(training={"sequenceLength": LENGTH}, arguments=arguments), {"train": shards}
        )
        assert code == 0, output
        losses[name] = [event["loss"] for event in events(output, "step")]
        if arguments:
            found = events(output, "sample")
    assert losses["with"] == losses["without"]
    assert [(event["step"], event["number"]) for event in found] == [(step, number) for step in (2, 4, 6) for number in range(3)]
    text = (shards.parent / "train.txt").read_text()
    first = [event for event in found if event["number"] == 0]
    assert {event["prompt"] for event in first} == {text[:PROMPT]}
    assert {event["expected"] for event in first} == {text[PROMPT : PROMPT + TOKENS]}
    assert len({event["text"] for event in first}) > 1, "the model learns, and says something else"


def test_prompts_of_conversations_are_what_stands_before_the_answer(tmp_path: Path) -> None:
    shards = data.tokenise(tmp_path / "chats", CONVERSATIONS, Path("byte"), "--chat-template", PLAIN_CHAT)
    job = trainer_job(training={"objective": "sft", "sequenceLength": LENGTH, "steps": 1}, arguments=ASKED)
    found = sampled(tmp_path, 2, job, train=shards, eval=shards)
    assert [event["prompt"] for event in found] == ["u:count\na:"] * 3
    answers_of_data = [line["messages"][1]["content"] for line in CONVERSATIONS]
    assert all(any(answer.startswith(event["expected"]) or event["expected"] == answer for answer in answers_of_data) for event in found)


def test_prompts_of_preferences_are_theirs_and_the_chosen_one_is_expected(tmp_path: Path) -> None:
    shards = data.tokenise(tmp_path / "pairs", PREFERENCES, Path("byte"))
    job = trainer_job(training={"objective": "dpo", "sequenceLength": LENGTH, "steps": 1}, arguments=ASKED)
    found = sampled(tmp_path, 1, job, train=shards)
    assert [(event["prompt"], event["expected"]) for event in found] == [(line["prompt"], line["chosen"]) for line in PREFERENCES[:3]]


def test_a_tokenizer_that_is_named_makes_text(tmp_path: Path, shards: Path) -> None:
    tokenizer = tmp_path / "tokenizer"
    data.write_tokenizer(tokenizer, template=None)
    job = trainer_job(
        training={"sequenceLength": LENGTH, "steps": 1}, arguments=[*ASKED, "--sample-tokenizer", str(tokenizer / "tokenizer.json")]
    )
    found = sampled(tmp_path, 1, job, train=shards)
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    assert [event["text"] for event in found] == [loaded.decode(event["tokens"]) for event in found]


def test_the_tokenizer_is_the_one_named_else_that_of_the_data_else_the_one_beside_the_weights(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    data.write_tokenizer(tmp_path / "good", template=None)
    (tmp_path / "none").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/tokenizer.json").write_text("{")
    ids = [ord("h"), ord("i"), 300]
    beside = find_detokenizer("", "other", tmp_path / "good")
    assert beside is not None and beside(ids) != "hi"
    for asked, of_data in (("byte", "other"), ("", "byte")):
        found = find_detokenizer(asked, of_data, tmp_path / "good")
        assert found is not None and found(ids) == "hi"
    for folder in (tmp_path / "none", tmp_path / "broken", None):
        assert find_detokenizer("", "other", folder) is None
    with pytest.raises(InvalidRun, match="must be a tokenizer.json that the image's `tokenizers` package reads, got "):
        find_detokenizer(str(tmp_path / "broken/tokenizer.json"), "byte", None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--samples", "-1"], "samples: must be a whole number of at least 0"),
        (["--samples", "1", "--sample-tokens", "96"], "code.arguments.sample-tokens: must be 1 to 64, what sequenceLength 96 leaves"),
        (["--samples", "1", "--sample-tokenizer", "/nowhere/tokenizer.json"], "sample-tokenizer: must be `byte` or a tokenizer.json"),
    ],
)
def test_fails_with_77_for_samples_that_cannot_be(tmp_path: Path, shards: Path, arguments: list[str], message: str) -> None:
    code, output = run_ranks(tmp_path, 1, trainer_job(training={"sequenceLength": LENGTH}, arguments=arguments), {"train": shards})
    assert code == 77 and message in output
