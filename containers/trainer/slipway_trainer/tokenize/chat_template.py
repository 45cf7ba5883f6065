"""Chat templates: render a conversation to text, like `apply_chat_template` of transformers.

Templates are Jinja programs that are part of a model, so they run in Jinja's sandbox. `{% generation %}` blocks contain the assistant's
messages (https://huggingface.co/docs/transformers/main/en/chat_templating_writing, 2026-11-22).
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from slipway_trainer.exits import Settings

#: Keys of a message's reasoning. Most templates read the first one, GPT-OSS's template the second one.
_REASONING = ("reasoning_content", "thinking", "reasoning")
_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")

Message = Mapping[str, Any]


class Rendered(NamedTuple):
    """The text of a conversation. `turns`: start and end of the assistant's messages, if the template has `{% generation %}` blocks."""

    text: str
    turns: list[tuple[int, int]]


class TemplateFailed(Exception):
    """The template rejected a conversation, or could not render it."""


class ChatTemplate:
    """A template with the special tokens that it may use (`bos_token`, `eos_token`)."""

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        """Raises Settings for an invalid template, or if the image does not have Jinja."""
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
            raise Settings(
                ["code.arguments.chat-template: the image must have the `jinja2` package; choose one that has it (image.uri)"]
            ) from error
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_generation_extension(self._say_turn), loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals |= {"raise_exception": _refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
        try:
            return environment.from_string(self.source)
        except TemplateSyntaxError as error:
            raise Settings(
                [f"tokenizer.chatTemplate: must be a Jinja template, got in line {error.lineno}: {error.message}; correct the template"]
            ) from error

    def _say_turn(self, text: str) -> str:
        """Records the text of a generation block; the text before it is already in the pieces."""
        begin = sum(map(len, self._pieces))
        self._turns.append((begin, begin + len(text)))
        return text

    def render(self, messages: Sequence[Message], generation_prompt: bool = False, **extra: Any) -> Rendered:
        """The text of `messages`; with `generation_prompt`, up to the start of the assistant's next message. Raises TemplateFailed."""
        self._pieces, self._turns = [], []
        values = {"tools": None, "documents": None} | self._special_tokens | extra
        try:
            for piece in self._template.generate(messages=_prepared(messages), add_generation_prompt=generation_prompt, **values):
                self._pieces.append(piece)
        except Exception as error:  # A template is a program that may raise any exception.
            raise TemplateFailed(str(error) or type(error).__name__) from error
        return Rendered("".join(self._pieces), self._turns)


def _prepared(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages without null values, and with their reasoning under the keys that templates read."""
    found = []
    for message in messages:
        present = {key: value for key, value in message.items() if value is not None}
        reasoning = next((present[key] for key in _REASONING if key in present), None)
        found.append(present if reasoning is None else {"thinking": reasoning, **present, "reasoning_content": reasoning})
    return found


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False) -> str:
    """Replaces Jinja's filter, which would escape HTML characters."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: str) -> None:
    raise TemplateFailed(message)


def _generation_extension(say_turn: Any) -> Any:
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
            return say_turn(caller())

    return Generation
