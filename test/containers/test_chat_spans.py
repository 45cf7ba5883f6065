"""What is trained in a conversation, by every template that TRL ships: what the assistant says, and the token that ends its turn."""

import json
import os
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import chat_data as data
import pytest

trl = pytest.importorskip("trl")
pytestmark = pytest.mark.torch

from tokenizers import Tokenizer  # noqa: E402

from slipway_trainer.exits import DataFailed  # noqa: E402
from slipway_trainer.tokenize.chat_template import ChatTemplate  # noqa: E402
from slipway_trainer.tokenize.examples import ExampleReader  # noqa: E402
from slipway_trainer.tokenize.tokenizers import load_tokenizer  # noqa: E402

SEED = os.environ["SLIPWAY_TEST_SEED"]
FOLDER = Path(trl.__file__).parent / "chat_templates"
#: A date in a template may change between two renderings.
SOURCES = {path.stem: path.read_text(encoding="utf-8").replace("strftime_now(", "(") for path in sorted(FOLDER.glob("*.jinja"))}
#: The end of a turn in messages, which templates that know them render: reasons, calls and systems are drawn for some conversations.
SHAPES = ("turns", "reasons", "calls", "system", "parts", "weights")
WORDS = ["sky", "Blue.", "naïve", "☕", "{x}", '"quoted"', "two\nlines", "1 < 2", "Yes!", "end."]
TOOL = {"type": "function", "function": {"name": "look_up", "description": "Finds.", "parameters": {"type": "object", "properties": {}}}}


class Tokens(NamedTuple):
    """The text of an example, and its stretches of trained text."""

    text: str
    trained: list[str]


def drawn(shape: str, rng: random.Random) -> dict[str, Any]:
    """A line with a conversation."""

    def said() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, 4)))

    messages = [{"role": "system", "content": f"rules: {said()}"}] if shape == "system" else []
    for number in range(rng.randint(1, 4)):
        messages.append(data.user(f"question {number}: {said()}"))
        if shape == "calls":
            function = {"name": "look_up", "arguments": '{"word": "%s", "count": %d}' % (rng.choice("ab"), rng.randint(0, 9))}
            messages.append({"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": function}]})
            messages.append({"role": "tool", "name": "look_up", "content": f"found {number}"})
        messages.append(data.assistant(said()))
        if shape == "reasons" and rng.random() < 0.7:
            messages[-1]["reasoning_content"] = "Because " + said()
        if shape == "parts":
            messages[-1]["content"] = [{"type": "text", "text": messages[-1]["content"]}]
        if shape == "weights":
            messages[-1] |= {"weight": rng.randint(0, 1), "content": f"answer-{number}-{said()}"}
    if shape == "weights":
        messages[-1]["weight"] = 1
    return {"messages": messages} | ({"tools": [TOOL]} if shape == "calls" else {})


class Reader:
    """Reads lines with one template and a tokenizer of its special tokens."""

    def __init__(self, folder: Path, source: str) -> None:
        path = data.write_tokenizer(folder, source, words=400)
        tokenizer, self.decode = load_tokenizer(str(path), None), Tokenizer.from_file(str(path)).decode
        self.reader = ExampleReader("sft", tokenizer, (ChatTemplate(source, tokenizer.special_tokens), None), trains_all=False)

    def read(self, line: dict[str, Any]) -> Tokens | None:
        """None if the template does not render such a line."""
        try:
            (example,) = self.reader.read(line, "a.jsonl:1")
        except DataFailed as error:
            assert re.match("a.jsonl:1: .*(the chat template rejected it|must be rendered by the chat template, which leaves)", str(error))
            return None
        stretches: list[list[int]] = [[]]
        for token, target in zip(example.tokens, example.targets, strict=True):
            stretches[-1:] = [stretches[-1] + [token]] if target else [stretches[-1], []]
        texts = [self.decode(tokens, skip_special_tokens=False) for tokens in [example.tokens, *stretches]]
        return Tokens(texts[0], [text for text in texts[1:] if text])


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    root = tmp_path_factory.mktemp("tokenizers")
    return {name: Reader(root / name, source) for name, source in SOURCES.items()}


def squeezed(text: str) -> str:
    return "".join(text.split())


def said_in(turn: dict[str, Any]) -> list[str]:
    """What the assistant says in a message. Arguments are objects in every published format of calls, never text in quotes."""
    parts = turn["content"] if isinstance(turn["content"], list) else [{"text": turn["content"] or ""}]
    calls = [call["function"] for call in turn.get("tool_calls", ())]
    words = [str(value) for call in calls for value in json.loads(call["arguments"]).values()]
    return [*(part["text"] for part in parts), turn.get("reasoning_content", ""), *(call["name"] for call in calls), *words]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_turn_is_trained_with_all_that_the_assistant_says_and_the_token_that_ends_it(readers: dict[str, Reader], shape: str) -> None:
    accepted: Counter[str] = Counter()
    for name, reader in readers.items():
        for draw in range(3):
            line = drawn(shape, random.Random(f"{SEED}-{shape}-{draw}"))
            found = reader.read(line)
            if found is None:
                continue
            accepted[name] += 1
            turns = [message for message in line["messages"] if message["role"] == "assistant"]
            trained = [turn for turn in turns if turn.get("weight") != 0]
            assert len(found.trained) == len(trained), f"{name}, seed {SEED}: {found}"
            for text, turn in zip(found.trained, trained, strict=True):
                assert any(one.end() == len(text.rstrip()) for one in data.WRITTEN.finditer(text)), f"{name}, seed {SEED}: {text!r}"
                for part in said_in(turn):
                    assert squeezed(part) in squeezed(text), f"{name}, seed {SEED}: {text!r} lacks {part!r}"
            others = [message["content"] for message in line["messages"] if message not in trained and message["content"]]
            assert not [text for text in found.trained if any(other in text for other in others)], f"{name}, seed {SEED}"
    least = {"turns": 40, "reasons": 12, "calls": 20, "system": 25, "parts": 40, "weights": 40}
    assert len(accepted) >= least[shape], sorted(set(readers) - set(accepted))
