"""Reads the messages of published formats of chat data (keys.py) into those of OpenAI, with the arguments of calls as objects."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from slipway_trainer.tokenize.keys import CALL, LOSS, MESSAGE, NONE, PART, REFUSED, Key, key_of

#: What to do about a template.
OTHER_TEMPLATE = "set another template in tokenizer.chatTemplate"


class BadLine(Exception):
    """A problem with a line, without its position. `fix`: what to do."""

    def __init__(self, problem: str, fix: str = "fix the line or remove it") -> None:
        super().__init__(problem)
        self.fix = fix


#: Roles of ShareGPT.
_SPEAKERS = {"human": "user", "gpt": "assistant", "function_call": "assistant", "observation": "tool"}
_NULLS_OF_SCHEMAS = ("default", "const")
IGNORE = "remove the key from the data, or list it in code.arguments.ignore-keys"

Message = dict[str, Any]


class Turns(NamedTuple):
    """Messages, and for each whether it is trained if the assistant wrote it."""

    messages: list[Message]
    trained: list[bool]


class MessageReader:
    """Reads messages. `ignored`: keys to leave out; `template`: the source of the chat template, which may read further keys."""

    def __init__(self, ignored: Collection[str], template: str) -> None:
        self._ignored, self._words = frozenset(ignored), frozenset(re.findall(r"\w+", template))

    def turns(self, value: Any, key: str) -> Turns:
        """The messages of a list, or of the JSON of one. Raises BadLine."""
        found = without_nulls(decoded(value, key))
        if not isinstance(found, list) or not found:
            raise BadLine(f"{key}: must be a list of messages, got {type_name(found)}")
        read = [self._message(without_nulls(decoded(message, key)), f"{key}[{number}]") for number, message in enumerate(found)]
        return Turns([message for message, _trained in read], [trained for _message, trained in read])

    def _message(self, given: Any, place: str) -> tuple[Message, bool]:
        message = {key: value for key, value in given.items() if key not in self._ignored} if isinstance(given, dict) else {}
        refuse(MESSAGE, message, f"{place}.")
        if "role" not in message and "from" in message:
            message = _from_sharegpt(message, place)
        if not isinstance(message.get("role"), str):
            raise BadLine(f"{place}: must be a message with a role and content, got {json.dumps(given)[:80]}")
        if message.get("content") is None and not message.get("tool_calls"):
            raise BadLine(f"{place}: must have content or tool_calls, got {', '.join(message)}")
        trained = _is_trained(message, place)
        kept = {key: value for key, value in message.items() if self._reaches_template(key, place)}
        if "content" in kept:
            kept["content"] = _content(kept["content"], f"{place}.content")
        if kept.get("tool_calls"):
            kept["tool_calls"] = [_call(call, f"{place}.tool_calls[{number}]") for number, call in enumerate(kept["tool_calls"])]
        return kept, trained

    def _reaches_template(self, name: str, place: str) -> bool:
        """Whether a key is passed to the template. Raises BadLine for a key without a known effect that the template does not mention."""
        key = key_of(MESSAGE, name)
        if key is not None:
            return key.effect not in (LOSS, NONE, REFUSED)
        if name not in self._words:
            raise BadLine(f"{place}.{name}: must be a key with an effect, got one that the chat template does not read", IGNORE)
        return True


def _from_sharegpt(message: Mapping[str, Any], place: str) -> Message:
    speaker, value = message["from"], message.get("value")
    others = {key: item for key, item in message.items() if key not in ("from", "value")}
    if not isinstance(speaker, str) or (speaker not in _SPEAKERS and speaker not in ("user", "assistant", "system", "tool")):
        raise BadLine(f"{place}.from: must be a role of ShareGPT ({', '.join(_SPEAKERS)}, system, tool), got {json.dumps(speaker)}")
    if speaker != "function_call":
        return others | {"role": _SPEAKERS.get(speaker, speaker), "content": value}
    called = json_of(value, f"{place}.value")
    return others | {"role": "assistant", "tool_calls": called if isinstance(called, list) else [called]}


def _is_trained(message: Mapping[str, Any], place: str) -> bool:
    """Whether the flags of a message leave it its loss."""
    flags = {name: message[name] for key in MESSAGE if key.effect == LOSS for name in key.names if name in message}
    for name, value in flags.items():
        if value not in (0, 1):
            raise BadLine(f"{place}.{name}: must be 0, 1, false or true, got {json.dumps(value)}")
        if bool(value) != (name == "masked") and message["role"] != "assistant":
            raise BadLine(f"{place}.{name}: must be used to train the assistant, got the role {message['role']}", IGNORE)
    return all(bool(value) != (name == "masked") for name, value in flags.items())


def _content(content: Any, place: str) -> Any:
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise BadLine(f"{place}: must be text or a list of parts, got {type_name(content)}")
    return [_part(part, f"{place}[{number}]") for number, part in enumerate(content)]


def _part(part: Any, place: str) -> dict[str, str]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, dict) or part.get("type", "text") != "text" or not isinstance(part.get("text"), str):
        raise BadLine(f"{place}: must be a part of type text, got {json.dumps(part, default=str)[:80]}")
    _only(PART, part, place)
    return {"type": "text", "text": part["text"]}


def _call(call: Any, place: str) -> dict[str, Any]:
    """A call with its arguments as an object."""
    if isinstance(call, dict) and "function" not in call and "name" in call:
        call = {"function": {key: call[key] for key in ("name", "arguments") if key in call}} | {
            key: value for key, value in call.items() if key not in ("name", "arguments")
        }
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or call.get("type", "function") != "function":
        raise BadLine(f"{place}: must be a call of a function with its name, got {json.dumps(call, default=str)[:80]}")
    _only(CALL, call, place)
    _only(CALL, function, f"{place}.function")
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        arguments = json_of(arguments, f"{place}.function.arguments")
    if not isinstance(arguments, dict):
        raise BadLine(f"{place}.function.arguments: must be an object, or the JSON of one, got {json.dumps(arguments)[:80]}")
    return {"type": "function", **call, "function": {"name": function["name"], "arguments": arguments}}


def _only(table: tuple[Key, ...], found: Mapping[str, Any], place: str) -> None:
    for name in found:
        if key_of(table, name) is None:
            raise BadLine(f"{place}.{name}: must be a key with an effect, got an unknown one", "remove the key from the data")


def without_nulls(value: Any, kept: Collection[str] = _NULLS_OF_SCHEMAS) -> Any:
    """A value without keys that are null, as which many programs write absent keys. In a schema, null may be a default or a constant."""
    if isinstance(value, dict):
        return {key: without_nulls(item, kept) for key, item in value.items() if item is not None or key in kept}
    return [without_nulls(item, kept) for item in value] if isinstance(value, list) else value


def has_null_argument(value: Any, inside: bool = False) -> bool:
    """Whether the arguments of a call in a value are an object with nulls."""
    if isinstance(value, dict):
        return any(has_null_argument(item, inside or key == "arguments") for key, item in value.items())
    if isinstance(value, list):
        return any(has_null_argument(item, inside) for item in value)
    return inside and value is None


def refuse(table: tuple[Key, ...], found: Mapping[str, Any], place: str) -> None:
    """Raises BadLine for a key that says something and is refused."""
    for name, value in found.items():
        key = key_of(table, name)
        if key is not None and key.effect == REFUSED and value not in ("", [], {}) and value not in key.harmless:
            raise BadLine(f"{place}{name}: must be absent ({key.what}), got {json.dumps(value, default=str)[:60]}", IGNORE)


def decoded(value: Any, place: str) -> Any:
    """A value that may be written as JSON."""
    return json_of(value, place) if isinstance(value, str) else value


def json_of(text: Any, place: str) -> Any:
    """The value of a JSON text. Raises BadLine."""
    try:
        return json.loads(text)
    except (TypeError, ValueError) as error:
        raise BadLine(f"{place}: must be JSON ({error}), got {json.dumps(text, default=str)[:80]}") from error


def type_name(value: Any) -> str:
    """The type of a value, for messages."""
    names = {str: "text", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), type(value).__name__) if value != [] else "an empty list"
