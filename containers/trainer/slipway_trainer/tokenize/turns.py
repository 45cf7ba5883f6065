"""Finds what the assistant generates in a conversation, for chat templates that do not mark it with `{% generation %}`.

The tokens that a model generates in a turn are those between the generation prompt and the end of the conversation up to this turn.
Templates of models that think render earlier turns without their reasoning when other turns follow. Their turns are joined here as they
are generated, so that each turn keeps its reasoning and the marker that ends it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from slipway_trainer.tokenize.bad_line import OTHER_TEMPLATE, BadLine
from slipway_trainer.tokenize.chat_template import TemplateFailed

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
