"""Post-training data: every shape of a line gives the tokens and targets that TRL makes of it."""

import json
from pathlib import Path
from typing import Any

import chat_data as data
import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")
pytestmark = pytest.mark.torch

import torch  # noqa: E402
import trl  # noqa: E402
from datasets import Dataset  # noqa: E402
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM  # noqa: E402
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer  # noqa: E402

from slipway_trainer.examples import Documents  # noqa: E402
from slipway_trainer.loss import IGNORED  # noqa: E402
from slipway_trainer.shard_format import read_index  # noqa: E402

Pairs = list[tuple[list[int], list[int]]]


def ours(shards: Path) -> Pairs:
    """Tokens of each document, and its targets at their own places."""
    documents, found = Documents(read_index(shards)), []
    for number, length in enumerate(documents.lengths):
        sample = torch.zeros(3, length, dtype=torch.long)
        sample[1] = IGNORED
        documents.fill(sample, 0, number, length)
        found.append((sample[0].tolist(), [IGNORED, *sample[1, :-1].tolist()]))
    return found


def tiny() -> LlamaForCausalLM:
    return LlamaForCausalLM(LlamaConfig(vocab_size=400, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1))


def options(root: Path, kind: type, **changes: Any) -> Any:
    return kind(output_dir=str(root / "trl"), report_to=[], use_cpu=True, bf16=False, max_length=None, **changes)


def fine_tuned(root: Path, tokenizer: Path, lines: list[dict[str, Any]], **changes: Any) -> Pairs:
    """What SFTTrainer makes of the lines. The first token of a document is never a target: labels are shifted in the model."""
    trainer = SFTTrainer(
        model=tiny(),
        args=options(root, SFTConfig, **changes),
        processing_class=AutoTokenizer.from_pretrained(tokenizer.parent),
        train_dataset=Dataset.from_list(lines),
    )
    return [(row["input_ids"], [IGNORED, *row["labels"][1:]]) for row in trainer.train_dataset]


def preferred(root: Path, tokenizer: Path, lines: list[dict[str, Any]]) -> Pairs:
    trainer = DPOTrainer(
        model=tiny(),
        ref_model=tiny(),
        args=options(root, DPOConfig),
        processing_class=AutoTokenizer.from_pretrained(tokenizer.parent),
        train_dataset=Dataset.from_list(lines),
    )
    found = []
    for row in trainer.train_dataset:
        for side in ("chosen_ids", "rejected_ids"):
            labels = [IGNORED] * len(row["prompt_ids"]) + row[side]
            found.append((row["prompt_ids"] + row[side], [IGNORED, *labels[1:]]))
    return found


def test_conversations_train_on_what_the_assistant_says(tmp_path: Path) -> None:
    tokenizer = data.write_tokenizer(tmp_path / "tokenizer")
    expected = fine_tuned(tmp_path, tokenizer, data.CONVERSATIONS, assistant_only_loss=True)
    assert ours(data.tokenise(tmp_path, data.CONVERSATIONS, tokenizer)) == expected


def test_conversations_train_on_everything_when_the_run_says_so(tmp_path: Path) -> None:
    tokenizer = data.write_tokenizer(tmp_path / "tokenizer")
    expected = fine_tuned(tmp_path, tokenizer, data.CONVERSATIONS, assistant_only_loss=False)
    assert ours(data.tokenise(tmp_path, data.CONVERSATIONS, tokenizer, "--train-on", "all")) == expected


@pytest.mark.parametrize("lines", [data.COMPLETIONS, data.ASKED], ids=["plain", "conversational"])
def test_completions_train_on_what_is_behind_the_prompt(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    tokenizer = data.write_tokenizer(tmp_path / "tokenizer")
    assert ours(data.tokenise(tmp_path, lines, tokenizer)) == fine_tuned(tmp_path, tokenizer, lines)


PREFERENCES = [data.PREFERENCES, data.PREFERENCES_WITHOUT_PROMPT, data.PREFERRED_TURNS[:2], data.PREFERRED_TURNS[2:]]


@pytest.mark.parametrize("lines", PREFERENCES, ids=["plain", "plain without prompt", "turns without prompt", "turns"])
def test_preferences_are_two_documents_with_one_prompt(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    tokenizer = data.write_tokenizer(tmp_path / "tokenizer")
    assert ours(data.tokenise(tmp_path, lines, tokenizer)) == preferred(tmp_path, tokenizer, lines)


def test_a_template_without_marks_gives_the_same_targets_and_the_end_of_each_turn(tmp_path: Path) -> None:
    marked = data.write_tokenizer(tmp_path / "marked")
    unmarked = data.write_tokenizer(tmp_path / "unmarked", data.UNMARKED)
    newline = json.loads(marked.read_text())["model"]["vocab"]["Ċ"]
    expected = ours(data.tokenise(tmp_path / "a", data.CONVERSATIONS, marked))
    found = ours(data.tokenise(tmp_path / "b", data.CONVERSATIONS, unmarked))
    for (tokens, targets), (others, other_targets) in zip(expected, found, strict=True):
        assert tokens == others
        differing = [place for place in range(len(tokens)) if targets[place] != other_targets[place]]
        # The template writes a new line behind each turn, and says only in its marks that it is not the assistant's.
        assert [other_targets[place] for place in differing] == [newline] * len(differing)
        assert len(differing) == sum(target == IGNORED != before for before, target in zip(targets, [*targets[1:], IGNORED], strict=True))


TEMPLATES = Path(trl.__file__).parent / "chat_templates"
#: Published templates for which TRL has one of its own for training, without those that need a processor of images, and without
#: DiffusionGemma's, whose mark ends inside the tokens of a last character.
PUBLISHED = [path.stem for path in sorted(TEMPLATES.glob("*.jinja")) if path.with_stem(f"{path.stem}_training").is_file()]
PUBLISHED = [name for name in PUBLISHED if name not in ("idefics3", "llava_next", "smolvlm", "diffusion_gemma")]
#: Those where TRL also trains what the generation prompt ends in, which the model never generates: the role, or the start of its thoughts.
BEGINNINGS = ("deepseek", "gptoss", "muse", "nemotron", "qwen2_5", "qwen3_5", "qwen3_6", "qwen3_8")
WITH_PROMPT = {name for name in PUBLISHED if name.startswith(BEGINNINGS) and name != "qwen2_5_vl"}
CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": 2}}}
CALLED = [data.user("Add."), {"role": "assistant", "content": "", "tool_calls": [CALL]}, {"role": "tool", "name": "add", "content": "4"},
          data.assistant("Four."), data.user("Sure?"), data.assistant("Yes.")]  # fmt: skip
SPOKEN = [line for line in data.CONVERSATIONS if line["messages"][0]["role"] != "system"]


def test_enough_published_templates_are_compared() -> None:
    assert len(PUBLISHED) > 24 and len(set(PUBLISHED) - WITH_PROMPT) > 12


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", [*PUBLISHED, *(f"{name}_training" for name in PUBLISHED)])
def test_a_published_template_gives_the_tokens_and_targets_of_trls_own_for_training(tmp_path: Path, name: str) -> None:
    source = (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    tokenizer = data.write_tokenizer(tmp_path / "tokenizer", source, words=380)
    # Only these render calls whole.
    calls = [{"messages": CALLED}] if name.startswith(("glm", "gptoss", "qwen")) and not name.startswith("qwen2_5_vl") else []
    expected = fine_tuned(tmp_path, tokenizer, SPOKEN + calls, assistant_only_loss=True)
    found = ours(data.tokenise(tmp_path, SPOKEN + calls, tokenizer))
    prompt = AutoTokenizer.from_pretrained(tokenizer.parent).apply_chat_template([data.user("?")], add_generation_prompt=True)["input_ids"]
    for (tokens, targets), (other_tokens, other_targets) in zip(found, expected, strict=True):
        assert tokens == other_tokens
        further = [other for own, other in zip(targets, other_targets, strict=True) if own != other]
        assert set(further) <= set(prompt if name in WITH_PROMPT else []), f"{name}: TRL also trains {further}"
        assert all(own in (IGNORED, other) for own, other in zip(targets, other_targets, strict=True)), name


@pytest.mark.parametrize("place", ["tokenizer_config.json", "additional_chat_templates"])
def test_conversations_with_tools_are_rendered_by_the_template_that_the_tokenizer_has_for_them(tmp_path: Path, place: str) -> None:
    tokenizer = data.write_tokenizer(tmp_path / "tokenizer")
    with_tools = "{{ tools | tojson }}" + data.MARKED
    if place == "additional_chat_templates":
        (tokenizer.parent / place).mkdir()
        (tokenizer.parent / place / "tool_use.jinja").write_text(with_tools)
        (tokenizer.parent / "chat_template.jinja").write_text(data.MARKED)
    else:
        config = json.loads((tokenizer.parent / place).read_text())
        named = [{"name": "default", "template": data.MARKED}, {"name": "tool_use", "template": with_tools}]
        (tokenizer.parent / place).write_text(json.dumps(config | {"chat_template": named}))
    loaded = AutoTokenizer.from_pretrained(tokenizer.parent)
    tool = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}}}
    lines = [data.CONVERSATIONS[0], data.CONVERSATIONS[1] | {"tools": [tool]}]
    expected = [loaded.apply_chat_template(line["messages"], tools=line.get("tools"), tokenize=True)["input_ids"] for line in lines]
    assert [tokens for tokens, _targets in ours(data.tokenise(tmp_path, lines, tokenizer))] == expected
