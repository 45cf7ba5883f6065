"""Published formats of chat data: each says the same as its conversation in `messages`, and every key does what the table says."""

import json
import os
import random
from pathlib import Path
from typing import Any

import chat_data as data
import pytest

pytest.importorskip("jinja2")

from slipway_trainer.exits import DataFailed
from slipway_trainer.tokenize.chat_template import ChatTemplate
from slipway_trainer.tokenize.examples import KINDS, Example, ExampleReader
from slipway_trainer.tokenize.formats import shape_of
from slipway_trainer.tokenize.keys import LOSS, NONE, REFUSED, TABLES, TEXT, markdown
from slipway_trainer.tokenize.tokenizers import ByteTokenizer

SEED = os.environ["SLIPWAY_TEST_SEED"]
#: Renders everything that a message of a published format may have.
WHOLE = """{% for t in tools or [] %}{{ t | tojson }}
{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }} {{ m.name }} {{ m.tool_call_id }}
{{ m.reasoning_content }} {{ m.content }}{% for c in m.tool_calls or [] %}{{ c.id }}
{{ c.function.name }} {{ c.function.arguments | tojson }}
{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant {% endif %}{{ style }}"""
CALL = {"type": "function", "function": {"name": "look_up", "arguments": {"word": "sky", "count": 2}}}
TOOL = {"name": "look_up", "description": "Finds.", "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}


def read(line: dict[str, Any], ignored: tuple[str, ...] = ()) -> list[Example]:
    template = ChatTemplate(WHOLE, {})
    return ExampleReader(KINDS[shape_of(line) or "messages"], ByteTokenizer(), (template, None), False, ignored).read(line, "a.jsonl:1")


def openai_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """As OpenAI writes them: nulls, and arguments as JSON."""
    written = json.loads(json.dumps(messages))
    for message in written:
        message.setdefault("content", None)
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    return {"messages": written, "parallel_tool_calls": False}


def sharegpt_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    names = {"user": "human", "assistant": "gpt", "tool": "observation"}
    turns = [{"from": names.get(one["role"], one["role"]), "value": one.get("content")} for one in messages]
    for turn, message in zip(turns, messages, strict=True):
        if "tool_calls" in message:
            turn |= {"from": "function_call", "value": json.dumps(message["tool_calls"][0]["function"])}
    if turns[0]["from"] == "system":
        return {"conversations": turns[1:], "system": turns[0]["value"]}
    return {"conversations": turns}


def parts_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"messages": [m | {"content": [{"type": "text", "text": m["content"]}]} if "content" in m else m for m in messages]}


#: The same conversation in each format.
FORMATS = {
    "OpenAI": openai_of,
    "ShareGPT": sharegpt_of,
    "content parts": parts_of,
    "JSON in a column": lambda messages: {"messages": json.dumps(messages)},
    "JSON of each message": lambda messages: {"messages": [json.dumps(message) for message in messages]},
    "flags that change nothing": lambda messages: {
        "messages": [m | ({"weight": 1, "train": True} if m["role"] == "assistant" else {"weight": 0}) for m in messages]
    },
    "nulls of a table": lambda messages: {"messages": [{"name": None, "tool_calls": None} | m for m in messages], "tools": None},
    "calls without a wrapper": lambda messages: {
        "messages": [m | {"tool_calls": [c["function"] for c in m["tool_calls"]]} if "tool_calls" in m else m for m in messages]
    },
}


def drawn(rng: random.Random) -> list[dict[str, Any]]:
    words = ["sky", "naïve ☕", '"quoted"', "two\nlines", "{x}"]
    messages = [{"role": "system", "content": rng.choice(words)}] if rng.random() < 0.5 else []
    for _turn in range(rng.randint(1, 3)):
        messages.append(data.user(rng.choice(words)))
        if rng.random() < 0.5:
            messages += [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "content": rng.choice(words)}]
        messages.append(data.assistant(rng.choice(words)))
    return messages


@pytest.mark.parametrize("name", FORMATS)
def test_a_conversation_becomes_the_same_tokens_in_every_format(name: str) -> None:
    for draw in range(20):
        messages = drawn(random.Random(f"{SEED}-{draw}"))
        assert read(FORMATS[name](messages)) == read({"messages": messages}), f"seed {SEED}, draw {draw}"


def test_alpaca_is_a_conversation() -> None:
    line = {"instruction": "Add.", "input": "1 and 2", "output": "3", "system": "Be brief.", "history": [["Hello?", "Yes."]]}
    turns = [data.user("Hello?"), data.assistant("Yes."), data.user("Add.\n1 and 2"), data.assistant("3")]
    assert read(line) == read({"messages": [{"role": "system", "content": "Be brief."}, *turns]})
    assert read({"instruction": "Add.", "input": "", "output": "3"}) == read({"messages": [data.user("Add."), data.assistant("3")]})


@pytest.mark.parametrize("tools", [[TOOL], json.dumps([TOOL]), [json.dumps(TOOL)]], ids=["flat", "JSON", "JSON of each"])
def test_tools_are_those_of_openai_however_they_are_written(tools: Any) -> None:
    messages = [data.user("Sky?"), data.assistant("Blue.")]
    expected = read({"messages": messages, "tools": [{"type": "function", "function": TOOL}]})
    assert read({"messages": messages, "tools": tools}) == expected == read({"messages": messages, "functions": tools})


ANSWERS = ([data.assistant("Blue.")], [data.assistant("Red.")])
PAIRED = {"prompt": [data.user("Sky?")], "chosen": ANSWERS[0], "rejected": ANSWERS[1]}


@pytest.mark.parametrize(
    "line",
    [
        {"chosen": [data.user("Sky?"), *ANSWERS[0]], "rejected": [data.user("Sky?"), *ANSWERS[1]]},
        {"prompt": "Sky?", "chosen": [data.user("Sky?"), *ANSWERS[0]], "rejected": [data.user("Sky?"), *ANSWERS[1]], "score_chosen": 8.0},
        {"prompt": "Sky?", "chosen": ANSWERS[0], "rejected": ANSWERS[1]},
        {"input": {"messages": [data.user("Sky?")]}, "preferred_output": ANSWERS[0], "non_preferred_output": ANSWERS[1]},
        {
            "conversations": [{"from": "human", "value": "Sky?"}],
            "chosen": {"from": "gpt", "value": "Blue."},
            "rejected": {"from": "gpt", "value": "Red."},
        },
        {"instruction": "Sky?", "input": "", "chosen": "Blue.", "rejected": "Red."},
        {"prompt": json.dumps(PAIRED["prompt"]), "chosen": json.dumps(ANSWERS[0]), "rejected": json.dumps(ANSWERS[1])},
    ],
    ids=[
        "implicit prompt",
        "prompt is text beside turns",
        "prompt is text before answers",
        "OpenAI",
        "LLaMA-Factory, ShareGPT",
        "LLaMA-Factory, Alpaca",
        "JSON",
    ],
)
def test_preferences_become_the_same_tokens_in_every_layout(line: dict[str, Any]) -> None:
    assert read(line) == read(PAIRED)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"question": "Sky?", "chosen": "It is blue.", "rejected": "It is red."}, "question: must be under prompt"),
        ({"chosen": "Blue.", "rejected": "Red."}, "chosen and rejected: must begin with the prompt, or stand beside prompt"),
        ({"chosen": json.dumps({"messages": PAIRED["chosen"]}), "rejected": "x"}, "chosen: must be text or messages, got the JSON"),
    ],
)  # fmt: skip
def test_fails_for_preferences_whose_prompt_would_be_lost(line: dict[str, Any], reason: str) -> None:
    with pytest.raises(DataFailed, match="a.jsonl:1: " + reason):
        read(line)


def test_fails_for_a_text_prompt_that_the_turns_do_not_have() -> None:
    line = {"prompt": "Grass?", "chosen": [data.user("Sky?"), *ANSWERS[0]], "rejected": [data.user("Sky?"), *ANSWERS[1]]}
    with pytest.raises(DataFailed, match="prompt: must be the text of one of the turns that both answers begin with, got 'Grass"):
        read(line)


#: A value of each key that says something, by the place of the key. Other values of TEXT are in the tests above.
VALUES: dict[str, dict[str, Any]] = {
    "line": {
        "system": "Be brief.", "tools": [TOOL], "functions": [TOOL], "tool_defs": [TOOL], "chat_template_kwargs": {"style": "short"},
        "parallel_tool_calls": True, "images": ["a.png"], "image": "a.png", "videos": ["a"], "video": "a", "audios": ["a"],
        "audio": "a", "label": False, "kto_tag": True, "weight": 0.5, "train": False, "loss": 0, "loss_mask": [0, 1],
        "mask": [True], "question": "Sky?", "query": "Sky?",
    },
    "message": {
        "role": "critic", "content": "Other.", "tool_calls": [CALL], "reasoning_content": "Why", "reasoning": "Why", "thinking": "Why",
        "name": "Ann", "tool_call_id": "c1", "weight": 0, "train": False, "training": False, "trainable": False, "loss": False,
        "loss_mask": 0, "masked": True, "annotations": [], "id": "m1", "timestamp": 3, "refusal": "No.", "audio": {"id": "a"},
        "function_call": {"name": "f"}, "prefix": True, "train_detail": [{"train": False}], "loss_scale": 0.5,
    },
    "call in `tool_calls`": {"id": "c1", "index": 0},
    "part of `content`": {"text": "Other.", "cache_control": {"type": "ephemeral"}, "annotations": []},
}  # fmt: skip
#: Keys that are the format itself, which the tests above show.
SHOWN = {
    "line": {"messages", "conversations", "prompt", "completion", "chosen", "rejected", "input", "preferred_output", "non_preferred_output",
             "instruction", "output", "history"},
    "message": {"from", "value"},
    "call in `tool_calls`": {"function", "name", "arguments", "type"},
    "part of `content`": {"type"},
}  # fmt: skip
KEYS = [(place, name, key.effect) for place, table in TABLES.items() for key in table for name in key.names]


def changed(place: str, key: str, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A line with two answers, and the line with a value for a key of its second answer."""
    last: dict[str, Any] = data.assistant("Yes.")
    if place.startswith("part"):
        last = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}
    if place.startswith("call"):
        last = {"role": "assistant", "tool_calls": [CALL]}
    other = dict(last)
    if place.startswith("part"):
        other["content"] = [{"type": "text", "text": "Yes."} | {key: value}]
    elif place.startswith("call"):
        other["tool_calls"] = [CALL | {key: value}]
    elif place == "message":
        other |= {key: value}
    begun = [data.user("Sky?"), data.assistant("Blue."), data.user("Sure?")]
    return {"messages": [*begun, last]}, {"messages": [*begun, other]} | ({key: value} if place == "line" else {})


def test_the_table_has_no_key_without_a_test() -> None:
    assert {(place, name) for place, name, _effect in KEYS} == {
        (place, name) for place in TABLES for name in [*VALUES[place], *SHOWN[place]]
    }


@pytest.mark.parametrize(("place", "name", "effect"), [one for one in KEYS if one[1] not in SHOWN[one[0]]])
def test_a_key_has_the_effect_that_the_table_says(place: str, name: str, effect: str) -> None:
    plain, line = changed(place, name, VALUES[place][name])
    if effect == REFUSED:
        with pytest.raises(DataFailed, match=rf"a.jsonl:1: (messages\[3\]\.)?{name}: must be absent .*, or list it in .*ignore-keys"):
            read(line)
        assert read(line, ignored=(name,)) == read(plain)
        return
    (before,), (after,) = read(plain), read(line)
    assert {TEXT: before.tokens != after.tokens, LOSS: before.tokens == after.tokens, NONE: before == after}[effect]
    if effect == LOSS:
        trained = bytes(t for t, m in zip(after.tokens, after.targets, strict=True) if m)
        assert b"Blue." in trained and b"Yes." not in trained


@pytest.mark.parametrize("place", ["message", "call in `tool_calls`", "part of `content`"])
def test_fails_for_a_key_that_nothing_reads(place: str) -> None:
    with pytest.raises(DataFailed, match=r"a.jsonl:1: messages\[3\].*\.mood: must be a key with an effect"):
        read(changed(place, "mood", "good")[1])
    if place == "message":
        assert read(changed(place, "mood", "good")[1], ignored=("mood",)) == read(changed(place, "mood", "good")[0])


def test_columns_that_no_format_has_are_noted() -> None:
    reader = ExampleReader("sft", ByteTokenizer(), (ChatTemplate(WHOLE, {}), None), False)
    for number in range(3):
        reader.read({"messages": [data.user("Sky?"), data.assistant("Blue.")], "source": "web", "id": number}, "a.jsonl:1")
    assert reader.notes == ["3 lines have the key source, which has no effect", "3 lines have the key id, which has no effect"]


ASKED = data.user("a")


def test_nulls_are_absent_keys_except_where_a_schema_means_them() -> None:
    reader = ExampleReader("sft", ByteTokenizer(), (ChatTemplate(WHOLE, {}), None), False)
    schema = {"name": "f", "parameters": {"properties": {"a": {"type": "string", "default": None, "enum": ["x", None]}, "b": None}}}
    call = {"type": "function", "id": None, "function": {"name": "f", "arguments": {"a": 1, "b": None}}}
    written = {"type": "function", "function": {"name": "f", "arguments": '{"a": null}'}}
    line = {"messages": [data.user("Go."), {"role": "assistant", "tool_calls": [call, written]}], "tools": [schema]}
    (example,) = reader.read(line, "a.jsonl:1")
    text = ByteTokenizer().decode(example.tokens)
    assert '"properties": {"a": {"type": "string", "default": null, "enum": ["x", null]}}' in text
    assert 'f {"a": 1}\n' in text and 'f {"a": null}\n' in text
    assert reader.notes == ["1 lines have arguments that are null, which were left out; write arguments as JSON text to keep them"]


def test_a_message_without_a_loss_must_leave_another_one() -> None:
    with pytest.raises(DataFailed, match="a.jsonl:1: messages: must have a turn of the assistant with a loss, got none"):
        read({"messages": [data.user("Sky?"), data.assistant("Blue.") | {"weight": 0}]})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"messages": [ASKED | {"weight": 1}, data.assistant("b")]}, r"messages\[0\].weight: must be used to train the assistant"),
        ({"messages": [ASKED, data.assistant("b") | {"weight": 0.3}]}, r"messages\[1\].weight: must be 0, 1, false or true, got 0.3"),
        ({"messages": [ASKED, {"role": "assistant", "content": [{"type": "image"}]}]}, r"content\[0\]: must be a part of type text"),
        (
            {"messages": [ASKED, {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{x"}}]}]},
            r"messages\[1\].tool_calls\[0\].function.arguments: must be JSON",
        ),
        ({"conversations": [{"from": "someone", "value": "a"}]}, r"conversations\[0\].from: must be a role of ShareGPT"),
        ({"prompt": "a", "completion": [data.assistant("b") | {"train": False}]}, "completion: must be trained as a whole"),
        ({"prompt": [ASKED], "chosen": [data.assistant("b")], "rejected": [ASKED]}, "rejected: must have a message of the assistant"),
        ({"messages": [data.user("a \ud83d"), data.assistant("b")]}, r"must have text of whole characters, got '\\ud83d'; remove the line"),
        ({"prompt": "a \ud83d", "completion": "b"}, "must have text of whole characters"),
    ],
)  # fmt: skip
def test_fails_naming_the_key_of_what_cannot_be_trained(line: dict[str, Any], reason: str) -> None:
    with pytest.raises(DataFailed, match="a.jsonl:1: .*" + reason):
        read(line)


def test_the_documents_have_the_table() -> None:
    page = Path(__file__).parents[2] / "docs/reference/chat-data.md"
    assert markdown() in page.read_text(encoding="utf-8"), "python -m slipway_trainer.tokenize.keys prints the table"
