"""Chat templates: render a conversation to text, like `apply_chat_template` of transformers.

Templates are Jinja programs that are part of a model, so they run in Jinja's sandbox. `{% generation %}` blocks contain the assistant's
messages (https://huggingface.co/docs/transformers/main/en/chat_templating_writing, 2026-11-22).
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from slipway_trainer.exits import InvalidRun

Message = Mapping[str, Any]
#: Keys of a message's reasoning. Most templates read the first one, GPT-OSS's template the second one.
REASONING = ("reasoning_content", "thinking", "reasoning")
_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")
#: Text by which a rendering shows what a template can render.
_PROBE = "slipway"
#: What a message without content may have in its place.
_NO_CONTENT: tuple[dict[str, Any], ...] = ({}, {"content": ""}, {"content": None})


class Rendered(NamedTuple):
    """The text of a conversation. `turns`: start and end of the assistant's messages, if the template has `{% generation %}` blocks."""

    text: str
    turns: list[tuple[int, int]]


class TemplateFailed(Exception):
    """The template rejected a conversation, or could not render it."""


class ChatTemplate:
    """A template with the special tokens that it may use (`bos_token`, `eos_token`)."""

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        """Raises InvalidRun for an invalid template, or if the image does not have Jinja."""
        self.marks_turns = _GENERATION.search(source) is not None
        self.source = source
        self._special_tokens = dict(special_tokens)
        self._pieces: list[str] = []
        self._turns: list[tuple[int, int]] = []
        self._template = self._compiled()

    def _compiled(self) -> Any:
        try:
            from jinja2 import TemplateSyntaxError
            from jinja2.ext import loopcontrols
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError as error:
            raise InvalidRun(
                "code.arguments.chat-template: the image must have the `jinja2` package; choose one that has it (image.uri)"
            ) from error
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_generation_extension(self._mark_turn), loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals |= {"raise_exception": _refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
        try:
            return environment.from_string(self.source)
        except TemplateSyntaxError as error:
            raise InvalidRun(
                f"tokenizer.chatTemplate: must be a Jinja template, got in line {error.lineno}: {error.message}; correct the template"
            ) from error

    def _mark_turn(self, text: str) -> str:
        """Records the text of a generation block; the text before it is already in the pieces."""
        begin = sum(map(len, self._pieces))
        self._turns.append((begin, begin + len(text)))
        return text

    def render(self, messages: Sequence[Message], generation_prompt: bool = False, **extra: Any) -> Rendered:
        """The text of `messages`; with `generation_prompt`, up to the start of the assistant's next message. Raises TemplateFailed."""
        return self._render([self._prepared(message) for message in messages], generation_prompt, extra)

    def _render(self, messages: Sequence[Message], generation_prompt: bool, extra: Mapping[str, Any]) -> Rendered:
        self._pieces, self._turns = [], []
        values = {"tools": None, "documents": None} | self._special_tokens | extra
        try:
            for piece in self._template.generate(messages=messages, add_generation_prompt=generation_prompt, **values):
                self._pieces.append(piece)
        except MemoryError:
            raise
        except Exception as error:  # A template is a program that may raise any exception.
            raise TemplateFailed(str(error) or type(error).__name__) from error
        return Rendered("".join(self._pieces), self._turns)

    def _prepared(self, message: Message) -> dict[str, Any]:
        """A message in the form that this template reads: its content as text or as parts, the arguments of calls as an object or as JSON,
        and its reasoning under the keys that templates read."""
        found = {key: value for key, value in message.items() if value is not None}
        content, (takes_text, takes_parts) = found.get("content"), self._content_form
        if isinstance(content, list) and not takes_parts:
            # As vLLM does when it serves such a template.
            found["content"] = "\n".join(part["text"] for part in content)
        elif isinstance(content, str) and takes_parts and not takes_text:
            found["content"] = [{"type": "text", "text": content}]
        if found.get("tool_calls"):
            found = self._with_calls(found)
        reasoning = next((found[key] for key in REASONING if key in found), None)
        return found if reasoning is None else {"thinking": reasoning, **found, "reasoning_content": reasoning}

    def _with_calls(self, message: dict[str, Any]) -> dict[str, Any]:
        takes_objects, accepted = self._call_form
        empty = {key: value for key, value in message.items() if key == "content"}
        if not message.get("content") and accepted and empty not in accepted:
            message = {key: value for key, value in message.items() if key != "content"} | accepted[0]
        if takes_objects:
            return message
        return message | {"tool_calls": [_with_text_arguments(call) for call in message["tool_calls"]]}

    @cached_property
    def _content_form(self) -> tuple[bool, bool]:
        """Whether the template renders content that is text, and content in parts."""
        text = self._probed({"role": "user", "content": _PROBE})
        found = self._probed({"role": "user", "content": [{"type": "text", "text": _PROBE}]})
        # Others print the list, as JSON or as Python does.
        return _PROBE in text, _PROBE in found and '"type"' not in found and "'type'" not in found

    @cached_property
    def _call_form(self) -> tuple[bool, list[dict[str, Any]]]:
        """Whether the template renders the arguments of a call from an object, like most, or from JSON, like DeepSeek V3's; and what it
        accepts in place of the content of such a message."""
        for arguments in ({_PROBE: 1}, f'{{"{_PROBE}": 1}}'):
            rendered = [(empty, self._probed({"role": "user", "content": "?"}, _call(arguments) | empty)) for empty in _NO_CONTENT]
            found = [empty for empty, text in rendered if _PROBE in text and f"{{'{_PROBE}'" not in text]
            if found:
                return isinstance(arguments, dict), found
        return True, []

    def _probed(self, *messages: Message) -> str:
        try:
            return self._render(messages, False, {}).text
        except TemplateFailed:
            return ""


def _call(arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": arguments}}]}


def _with_text_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    return {**call, "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"], ensure_ascii=False)}}


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False) -> str:
    """Replaces Jinja's filter, which would escape HTML characters."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: str) -> None:
    raise TemplateFailed(message)


def _generation_extension(mark_turn: Any) -> Any:
    """Jinja's `{% generation %} ... {% endgeneration %}`, which passes its text to `say_turn`."""
    from jinja2 import nodes
    from jinja2.ext import Extension

    class Generation(Extension):
        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

        def _text(self, caller: Any) -> str:
            return mark_turn(caller())

    return Generation
