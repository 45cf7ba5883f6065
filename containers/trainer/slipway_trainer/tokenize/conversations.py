"""Renders conversations with a chat template, and checks that it leaves nothing out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slipway_trainer.tokenize.bad_line import OTHER_TEMPLATE, BadLine
from slipway_trainer.tokenize.chat_template import REASONING, ChatTemplate
from slipway_trainer.tokenize.messages import IGNORE, Message
from slipway_trainer.tokenize.turns import Conversation, Turn, ended, found_turns

_THINK = re.compile(r"</?think>")
#: Text that occurs in no conversation.
_PROBE = "Zq1slipway1qZ"


class Chat:
    """A template with the values of one line. `markers`: the special tokens of the tokenizer."""

    def __init__(self, template: ChatTemplate, extra: Mapping[str, Any], markers: re.Pattern[str]) -> None:
        self._template, self._extra, self._markers = template, extra, markers

    def text(self, messages: Sequence[Message], generation_prompt: bool = False) -> str:
        """The rendered messages. Raises TemplateFailed."""
        return self._template.render(messages, generation_prompt=generation_prompt, **self._extra).text

    def whole(self, messages: Sequence[Message]) -> str:
        """The rendered messages, if nothing is left out. Raises BadLine."""
        text = self.text(messages)
        self._refuse_left_out(Conversation(text, []), messages)
        return text

    def closed(self, messages: Sequence[Message]) -> str:
        """The rendered messages with the marker that ends the last turn."""
        last = len(messages) - 1
        text = self.whole(messages)
        turns = [Turn(last, len(text), len(text))] if messages[last]["role"] == "assistant" else []
        return ended(self.text, messages, Conversation(text, turns), self._markers).text

    def conversation(self, messages: Sequence[Message], trained: Sequence[bool]) -> Conversation:
        """The rendered messages and the turns of the assistant that are trained. Raises BadLine if the template leaves something out."""
        found = self._marked(messages) if self._template.marks_turns else found_turns(self.text, messages, self._markers)
        if self._template.marks_turns and next(self._left_out(found, messages), None):
            # The template leaves out the reasoning of earlier turns.
            found = found_turns(self.text, messages, self._markers)
        self._refuse_left_out(found, messages)
        return found._replace(turns=[turn for turn in found.turns if trained[turn.message]])

    def _marked(self, messages: Sequence[Message]) -> Conversation:
        """A conversation with the turns that the template marks. A message may have several marks."""
        rendered = self._template.render(messages, **self._extra)
        marked = [(begin, end) for begin, end in rendered.turns if begin < end]
        numbers = [number for number, message in enumerate(messages) if message["role"] == "assistant"]
        if len(marked) != len(numbers):
            ends = [(number, len(self.text(messages[: number + 1]))) for number in numbers]
            numbers = [next((number for number, upto in ends if begin < upto), numbers[-1]) for begin, _end in marked]
        turns = [Turn(number, begin, end) for number, (begin, end) in zip(numbers, marked, strict=True)]
        return ended(self.text, messages, Conversation(rendered.text, turns), self._markers)

    def _refuse_left_out(self, rendered: Conversation, messages: Sequence[Message]) -> None:
        key = next(self._left_out(rendered, messages), None)
        if key is not None:
            fix = OTHER_TEMPLATE if key.endswith((".content", ".tool_calls")) else f"{OTHER_TEMPLATE}, or {IGNORE}"
            raise BadLine(f"{key}: must be rendered by the chat template, which leaves it out", fix)

    def _left_out(self, rendered: Conversation, messages: Sequence[Message]) -> Iterator[str]:
        """The keys of messages whose text the rendering does not have; of the assistant's messages, their turns, where they are known.
        Templates may change white space."""
        for number, message in enumerate(messages):
            own = "".join(rendered.text[turn.begin : turn.end] for turn in rendered.turns if turn.message == number) or rendered.text
            squeezed = _squeezed(own)
            # Joined turns were rendered without what follows.
            following = [] if rendered.is_joined and message["role"] == "assistant" else messages[number + 1 :]
            for key, part, probed in _texts(message):
                # Some templates write a text in another form.
                if _squeezed(part) not in squeezed and _PROBE not in self.text([*messages[:number], probed, *following]):
                    yield f"messages[{number}].{key}"
            if any(word not in own for call in message.get("tool_calls", ()) for word in _words(call["function"])):
                yield f"messages[{number}].tool_calls"


def _texts(message: Message) -> Iterator[tuple[str, str, Message]]:
    """The texts of a message: the key, the text, and the message with another text in its place."""
    content = message.get("content", "")
    if isinstance(content, str):
        for part in filter(str.strip, _THINK.split(content)):
            yield "content", part, {**message, "content": content.replace(part, _PROBE)}
    else:
        for place, part in enumerate(content):
            changed = [*content[:place], {**part, "text": _PROBE}, *content[place + 1 :]]
            yield "content", part["text"], {**message, "content": changed}
    name = next((name for name in REASONING if message.get(name)), None)
    if name is not None and isinstance(message[name], str):
        yield name, message[name], {**message, name: _PROBE}


def _words(function: Mapping[str, Any]) -> list[str]:
    """The name of a call and those of its arguments, except what templates may write in another form."""
    return [function["name"], *(name for name in function["arguments"] if name.isascii() and name.isidentifier())]


def _squeezed(text: str) -> str:
    return "".join(text.split())
