"""Chat templates: text, and where the assistant speaks, are those of transformers for every template that TRL ships."""

import json
from pathlib import Path
from typing import Any

import chat_data as data
import pytest

pytest.importorskip("torch")
trl = pytest.importorskip("trl")
pytestmark = pytest.mark.torch

from transformers.utils.chat_template_utils import render_jinja_template  # noqa: E402

from slipway_trainer.exits import InvalidRun  # noqa: E402
from slipway_trainer.tokenize.chat_template import ChatTemplate, TemplateFailed  # noqa: E402

TEMPLATES = sorted((Path(trl.__file__).parent / "chat_templates").glob("*.jinja"))
SPECIAL = {"bos_token": "<bos>", "eos_token": "<eos>"}
TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}}}]
CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": "ü"}}}
THINKING = data.assistant("Four.") | {"reasoning_content": "Two and two."}
TURNS = [data.user("Add."), data.assistant("Two."), data.user("More?"), data.assistant("Seven.")]
CONVERSATIONS: dict[str, dict[str, Any]] = {
    "turns": {"messages": TURNS},
    "a question": {"messages": TURNS[:3], "generation_prompt": True},
    "reasons": {"messages": [*TURNS[:2], data.user("And?"), THINKING]},
    "old name of reasons": {"messages": [data.user("And?"), data.assistant("Four.") | {"reasoning": "Two and two."}]},
    "system": {"messages": [{"role": "system", "content": "Be brief."}, *TURNS]},
    "tools": {
        "messages": [data.user("Add."), {"role": "assistant", "content": None, "tool_calls": [CALL]},
                     {"role": "tool", "name": "add", "content": "3"}, data.assistant("Three.")],
        "tools": TOOLS,
    },
}  # fmt: skip


def theirs(source: str, conversation: dict[str, Any]) -> tuple[str, list[tuple[int, int]]] | None:
    """What transformers renders from the first form of the messages, of those that published data has, which the template renders whole;
    None if it refuses or cuts all."""
    without = [{key: value for key, value in message.items() if value is not None} for message in conversation["messages"]]
    in_parts = [m | {"content": [{"type": "text", "text": m["content"]}]} if "content" in m else m for m in without]
    words = [message["content"] for message in without if message.get("content")]
    words += ["ü" for message in without if "tool_calls" in message]
    in_text = json.loads(json.dumps(conversation["messages"]))
    for function in (call["function"] for message in in_text for call in message.get("tool_calls", ())):
        function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False)
    forms = (without, conversation["messages"], in_text, in_parts)
    found = [rendered for form in forms if (rendered := rendered_by_them(source, form, conversation))]
    return next((one for one in found if all(word in one[0] for word in words)), None)


def rendered_by_them(source: str, messages: list[Any], conversation: dict[str, Any]) -> tuple[str, list[tuple[int, int]]] | None:
    try:
        texts, turns = render_jinja_template(
            conversations=[messages],
            tools=conversation.get("tools"),
            chat_template=source,
            return_assistant_tokens_mask=True,
            add_generation_prompt=conversation.get("generation_prompt", False),
            **SPECIAL,
        )
    except Exception:
        return None
    return texts[0], turns[0]


def ours(source: str, conversation: dict[str, Any]) -> tuple[str, list[tuple[int, int]]] | None:
    try:
        return tuple(ChatTemplate(source, SPECIAL).render(**conversation))
    except TemplateFailed:
        return None


@pytest.mark.drawn(1)
@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS.keys())
def test_templates_render_as_transformers_renders_them(conversation: dict[str, Any]) -> None:
    assert len(TEMPLATES) > 40
    rendered = marked = 0
    for path in TEMPLATES:
        source = path.read_text(encoding="utf-8")
        # A day may end between the two.
        source = source.replace("strftime_now(", "(")
        expected = theirs(source, conversation)
        assert expected is None or ours(source, conversation) == expected, path.name
        rendered += expected is not None
        marked += bool(expected and expected[1])
    assert rendered > 10 and (marked > 3 or conversation.get("generation_prompt"))


def test_fails_for_a_template_that_reaches_into_python() -> None:
    template = ChatTemplate("{{ messages.__class__.__mro__[1].__subclasses__() }}", {})
    with pytest.raises(TemplateFailed, match="unsafe"):
        template.render([data.user("x")])


def test_fails_for_a_template_with_a_mistake_and_says_the_line() -> None:
    with pytest.raises(InvalidRun, match="tokenizer.chatTemplate: must be a Jinja template, got in line 2"):
        ChatTemplate("x\n{% if %}", {})
