"""Renders conversations with a chat template, checks that it leaves nothing out, and finds what the assistant generates.

The tokens that a model generates in a turn are those between the generation prompt and the end of the conversation up to this turn.
Templates of models that think render earlier turns without their reasoning when other turns follow. Their turns are joined here as they
are generated, so that each turn keeps its reasoning and the marker that ends it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from slipway_trainer.tokenize.chat_template import REASONING, ChatTemplate, TemplateFailed
from slipway_trainer.tokenize.messages import IGNORE, OTHER_TEMPLATE, BadLine, Message

Messages = Sequence[Mapping[str, Any]]
#: Renders messages to text; the flag adds the generation prompt.
Render = Callable[[Messages, bool], str]

#: Text that occurs in no conversation and has no characters that JSON escapes.
_PROBE = "Zq0slipway0qZ"


class Turn(NamedTuple):
    """The text of an assistant message and of the marker that ends it. `message`: its index in the conversation."""

    message: int
    begin: int
    end: int


class Conversation(NamedTuple):
    """A rendered conversation. `is_joined`: the turns were joined, because the template renders earlier turns in another way."""

    text: str
    turns: list[Turn]
    is_joined: bool = False


class _Alone(NamedTuple):
    """The conversation up to a turn of the assistant: what is generated begins at `begin`. `asked`: the text with the generation prompt."""

    message: int
    text: str
    begin: int
    prompt: str


def found_turns(render: Render, messages: Messages, markers: re.Pattern[str]) -> Conversation:
    """Renders a conversation and finds its turns. `markers`: the special tokens of the tokenizer. Raises BadLine if the template does not
    render a message."""
    whole, turns = render(messages, False), _turns_alone(render, messages, markers)
    if not turns or all(whole.startswith(turn.text) for turn in turns):
        conversation = Conversation(whole, [Turn(turn.message, turn.begin, len(turn.text)) for turn in turns])
    else:
        conversation = _joined(render, messages, turns, markers)
    return ended(render, messages, conversation, markers)


def _turns_alone(render: Render, messages: Messages, markers: re.Pattern[str]) -> list[_Alone]:
    found = []
    for number, message in enumerate(messages):
        if message["role"] == "assistant":
            text, prompt = render(messages[: number + 1], False), render(messages[:number], True) if number else ""
            found.append(_Alone(number, text, _before_marker(text, common(prompt, text), markers), prompt))
    return found


def _before_marker(text: str, place: int, markers: re.Pattern[str]) -> int:
    """The place, or the start of the special token in the middle of which it is."""
    return min([place, *(marker.start() for marker in markers.finditer(text) if marker.start() < place < marker.end())])


def _joined(render: Render, messages: Messages, alone: Sequence[_Alone], markers: re.Pattern[str]) -> Conversation:
    """Joins the turns as they are generated. Each is followed by what the template writes between it and the next turn."""
    text, turns = alone[0].text[: alone[0].begin], []
    for place, turn in enumerate(alone):
        following = alone[place + 1] if place + 1 < len(alone) else None
        own_end = _end_of_content(turn.text, render, messages[: turn.message + 1], turn.message, False)
        if following is None:
            next_text = render(messages, False)
            next_end = _end_of_content(next_text, render, messages, turn.message, False)
        else:
            next_text = following.prompt
            next_end = _end_of_content(next_text, render, messages[: following.message], turn.message, True)
        begin = len(text)
        text += turn.text[turn.begin : own_end]
        ending = _ending(turn.text[own_end:], next_text[next_end:], markers)
        turns.append(Turn(turn.message, begin, len(text) + ending))
        text += next_text[next_end : following.begin if following is not None else None]
    return Conversation(text, turns, is_joined=True)


def _end_of_content(text: str, render: Render, messages: Messages, number: int, generation_prompt: bool) -> int:
    """Where the rendering of message `number` ends in the rendered messages, without what the template writes behind it."""
    changed = render([*messages[:number], _probed(messages[number]), *messages[number + 1 :]], generation_prompt)
    place = changed.find(_PROBE)
    if place < 0:
        raise BadLine(f"messages[{number}]: must be rendered by the chat template, which leaves it out", OTHER_TEMPLATE)
    return common(text, changed[:place])


def _probed(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with a text that is added to its end."""
    if message.get("tool_calls"):
        *others, last = message["tool_calls"]
        function = last["function"]
        return {**message, "tool_calls": [*others, {**last, "function": {**function, "arguments": function["arguments"] | {_PROBE: ""}}}]}
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": content + _PROBE}
    return {**message, "content": [*content[:-1], {**content[-1], "text": content[-1]["text"] + _PROBE}]}


def _ending(own: str, following: str, markers: re.Pattern[str]) -> int:
    """Length of the beginning of `following` that ends the turn. `own`: what ends the turn if nothing follows."""
    shared = _before_marker(own, common(own, following), markers)
    if markers.search(following, 0, shared):
        return shared
    marker = markers.search(following)
    return marker.end() if marker else shared


def ended(render: Render, messages: Messages, conversation: Conversation, markers: re.Pattern[str]) -> Conversation:
    """Extends each turn to the marker that ends it, if the template writes the marker at the start of the next message, as GLM's does. The
    last turn ends as if a message followed."""
    text, turns = conversation.text, []
    for turn in conversation.turns:
        marker = None if ends_in_marker(text[turn.begin : turn.end], markers) else _marker_at(text, turn.end, markers)
        turns.append(turn if marker is None else turn._replace(end=marker))
    last = turns[-1] if turns else None
    if last is not None and last.end == len(text) and not ends_in_marker(text, markers):
        text += _marker_of_next(render, messages, last.message, markers)
        turns[-1] = last._replace(end=len(text))
    return conversation._replace(text=text, turns=turns)


def ends_in_marker(text: str, markers: re.Pattern[str]) -> bool:
    """Whether a text ends in a special token, not counting white space behind it."""
    text = text.rstrip()
    return any(marker.end() == len(text) for marker in markers.finditer(text))


def _marker_at(text: str, place: int, markers: re.Pattern[str]) -> int | None:
    """The end of a special token that begins at a place, or behind white space there."""
    marker = markers.search(text, place)
    return marker.end() if marker and not text[place : marker.start()].strip() else None


def _marker_of_next(render: Render, messages: Messages, number: int, markers: re.Pattern[str]) -> str:
    """What a message behind message `number`, the last one, begins with, through its first special token; empty if there is none."""
    role = "tool" if messages[number].get("tool_calls") else "user"
    longer = [*messages, {"role": role, "content": "?"}]
    try:
        own, following = (
            (text := render(given, False))[_end_of_content(text, render, given, number, False) :] for given in (messages, longer)
        )
    except TemplateFailed:
        # The template has no message that may follow.
        return ""
    place = common(own, following)
    marker = markers.search(following, place)
    return following[place : marker.end()] if marker else ""


def common(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Length of the common prefix of two sequences."""
    same, differs = 0, min(len(first), len(second)) + 1
    while same + 1 < differs:
        middle = (same + differs) // 2
        same, differs = (middle, differs) if first[same:middle] == second[same:middle] else (same, middle)
    return same


_THINK = re.compile(r"</?think>")


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
