"""Reads the published formats of post-training data (keys.py) into three: messages, a prompt with a completion, and a preference."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from slipway_trainer.tokenize.conversations import common
from slipway_trainer.tokenize.keys import LINE, NONE, REFUSED
from slipway_trainer.tokenize.messages import (
    IGNORE,
    BadLine,
    Message,
    MessageReader,
    Turns,
    decoded,
    has_null_argument,
    json_of,
    refuse,
    type_name,
    without_nulls,
)

#: Keys that determine the format of a line, in the order in which they count.
_SHAPES = (
    ("preference", ("chosen", "rejected")),
    ("preference", ("preferred_output", "non_preferred_output")),
    ("completion", ("prompt", "completion")),
    ("messages", ("messages",)),
    ("messages", ("conversations",)),
    ("messages", ("instruction", "output")),
)
_TOOLS = ("tools", "functions", "tool_defs")
_OF_ALL = {*_TOOLS, "chat_template_kwargs"}
#: Further keys by the first key of a format.
_FURTHER = {
    "chosen": {"prompt", "conversations", "instruction", "input", "history", "system"},
    "messages": {"system"},
    "conversations": {"system"},
    "instruction": {"system", "input", "history"},
}

#: Keys under which preferences have a question that belongs under `prompt`.
_QUESTIONS = ("question", "query", "input")
#: Text that is the JSON of messages, or of an object with messages.
_TURNS_AS_TEXT = re.compile(r"\s*\[\s*\{\s*\"(role|content|from|value)\"")
_OBJECT_AS_TEXT = re.compile(r"\s*\{\s*\"(messages|conversations)\"\s*:")


class Line(NamedTuple):
    """A line in the form that is tokenized. `parts`: text or Turns by name (`messages`, `prompt`, `completion`, `chosen`, `rejected`);
    `extra`: values for the template; `notes`: what has no effect, after `lines have`."""

    shape: str
    parts: dict[str, Any]
    extra: dict[str, Any]
    notes: list[str]


def shape_of(line: Mapping[str, Any]) -> str | None:
    """The format of a line according to its keys: `preference`, `completion` or `messages`; None for others."""
    return next((shape for shape, keys in _SHAPES if all(line.get(key) is not None for key in keys)), None)


class LineReader:
    """Reads lines. `ignored`: keys to leave out; `template`: the source of the chat template, which may read further keys of messages."""

    def __init__(self, ignored: Collection[str], template: str) -> None:
        self._ignored, self._turns = frozenset(ignored), MessageReader(ignored, template).turns

    def read(self, given: Mapping[str, Any]) -> Line:
        """A line. Raises BadLine."""
        line = {key: _decoded_turns(value, key) for key, value in without_nulls(given).items() if key not in self._ignored}
        if "preferred_output" in line:
            line = _from_openai(line)
        shape = shape_of(line)
        if shape is None:
            raise BadLine(f"must have the keys of conversations, completions or preferences, got {', '.join(given) or 'none'}")
        refuse(LINE, line, "")
        parts = {"preference": self._preference, "completion": self._completion, "messages": self._conversation}[shape](line)
        notes = [f"the key {key}, which has no effect" for key in _unused(line, shape)]
        if has_null_argument({key: value for key, value in given.items() if key in line}):
            notes.append("arguments that are null, which were left out; write arguments as JSON text to keep them")
        return Line(shape, parts, _extra(line), notes)

    def _conversation(self, line: Mapping[str, Any]) -> dict[str, Turns]:
        key = next(key for key in ("messages", "conversations", "instruction") if key in line)
        found = self._turns(_alpaca(line) if key == "instruction" else line[key], key)
        if not line.get("system"):
            return {"messages": found}
        if found.messages[0]["role"] == "system":
            raise BadLine("system: must be absent beside a system message, got both", IGNORE)
        system = self._turns([{"role": "system", "content": line["system"]}], "system")
        return {"messages": Turns(system.messages + found.messages, system.trained + found.trained)}

    def _completion(self, line: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(line["prompt"], str) and not isinstance(line["completion"], str):
            line = {**line, "prompt": [{"role": "user", "content": line["prompt"]}]}
        return self._sides(line, "completion")

    def _preference(self, line: Mapping[str, Any]) -> dict[str, Any]:
        line = _with_prompt(line)
        prompt = line.get("prompt")
        if prompt is None or (isinstance(prompt, str) and not isinstance(line["chosen"], str)):
            line = {**line, **_split(line, prompt)}
        sides = self._sides(line, "chosen") | self._sides(line, "rejected")
        if sides["chosen"] == sides["rejected"]:
            raise BadLine("chosen: must differ from rejected, got the same")
        return sides

    def _sides(self, line: Mapping[str, Any], key: str) -> dict[str, Any]:
        """A prompt and an answer: both text, or both messages."""
        prompt, answer = line["prompt"], line[key]
        if isinstance(prompt, str) and isinstance(answer, str):
            return {"prompt": prompt, key: answer}
        if isinstance(prompt, str) or isinstance(answer, str):
            raise BadLine(f"prompt and {key}: must both be text or both lists of messages, got {type_name(prompt)} and {type_name(answer)}")
        turns = self._turns(answer, key)
        if all(message["role"] != "assistant" for message in turns.messages):
            raise BadLine(f"{key}: must have a message of the assistant, got {turns.messages[-1]['role']}")
        if any(message["role"] == "assistant" and not trained for message, trained in zip(*turns, strict=True)):
            raise BadLine(f"{key}: must be trained as a whole, got a message without a loss", "use messages, or remove the flag")
        return {"prompt": self._turns(prompt, "prompt") if prompt else Turns([], []), key: turns}


def _unused(line: Mapping[str, Any], shape: str) -> list[str]:
    keys = next(keys for found, keys in _SHAPES if found == shape and all(key in line for key in keys))
    used = {*keys, *_OF_ALL, *_FURTHER.get(keys[0], ())}
    published = {name for key in LINE if key.effect in (NONE, REFUSED) for name in key.names}
    return [key for key in line if key not in used | published]


def _from_openai(line: Mapping[str, Any]) -> dict[str, Any]:
    """OpenAI's format of preferences in the keys of TRL."""
    prompt_messages = line.get("input")
    if not isinstance(prompt_messages, dict) or "messages" not in prompt_messages:
        raise BadLine(f"input: must be an object with messages, got {type_name(prompt_messages)}")
    others = {key: value for key, value in line.items() if key not in ("input", "preferred_output", "non_preferred_output")}
    answers = {"chosen": line["preferred_output"], "rejected": line["non_preferred_output"]}
    return (
        others
        | {key: value for key, value in prompt_messages.items() if key != "messages"}
        | {"prompt": prompt_messages["messages"]}
        | answers
    )


def _alpaca(line: Mapping[str, Any]) -> list[Message]:
    pairs = [*line.get("history", []), ["\n".join(text for text in (line["instruction"], line.get("input")) if text), line["output"]]]
    if any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
        raise BadLine(f"history: must be pairs of a question and an answer, got {json.dumps(line['history'])[:80]}")
    roles = ("user", "assistant")
    return [{"role": role, "content": text} for pair in pairs for role, text in zip(roles, pair, strict=True)]


def _extra(line: Mapping[str, Any]) -> dict[str, Any]:
    """Values for the template: tools in OpenAI's form, and `chat_template_kwargs`."""
    key = next((key for key in _TOOLS if key in line), "tools")
    tools = decoded(line.get(key), key)
    if tools and not isinstance(tools, list):
        raise BadLine(f"{key}: must be a list, or the JSON of one, got {type_name(tools)}")
    given = line.get("chat_template_kwargs") or {}
    if not isinstance(given, dict):
        raise BadLine(f"chat_template_kwargs: must be an object, got {type_name(given)}")
    return {"tools": [_tool(tool, f"{key}[{number}]") for number, tool in enumerate(tools)] if tools else None, **given}


def _tool(given: Any, place: str) -> Any:
    tool = decoded(given, place)
    if isinstance(tool, dict) and "function" not in tool and isinstance(tool.get("name"), str):
        return {"type": "function", "function": tool}
    if not isinstance(tool, dict) or not isinstance(tool.get("function"), dict):
        raise BadLine(f"{place}: must be a function with its name and parameters, got {json.dumps(tool, default=str)[:80]}")
    return tool


def _decoded_turns(value: Any, key: str) -> Any:
    """A prompt or an answer whose turns are written as JSON."""
    if key not in ("prompt", "completion", "chosen", "rejected") or not isinstance(value, str):
        return value
    if _OBJECT_AS_TEXT.match(value):
        raise BadLine(f"{key}: must be text or messages, got the JSON of an object with messages", "write its messages under the key")
    return without_nulls(json_of(value, key)) if _TURNS_AS_TEXT.match(value) else value


def _with_prompt(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """A preference in LLaMA-Factory's keys, in those of TRL."""
    if "prompt" in line:
        return line
    answers = {key: [line[key]] if isinstance(line[key], dict) else line[key] for key in ("chosen", "rejected")}
    if "conversations" in line:
        prompt_messages = decoded(line["conversations"], "conversations")
    elif "instruction" in line:
        prompt_messages = _alpaca({**line, "output": ""})[:-1]
        answers = {key: [{"role": "assistant", "content": text}] for key, text in answers.items()}
    else:
        name = next((name for name in _QUESTIONS if isinstance(line.get(name), str) and not _begins_with(line["chosen"], line[name])), None)
        if name is not None:
            raise BadLine(f"{name}: must be under prompt for chosen and rejected, got it under {name}", "rename the key to prompt")
        return {**line, **answers}
    system = [{"role": "system", "content": line["system"]}] if line.get("system") else []
    return {**line, **answers, "prompt": system + prompt_messages}


def _begins_with(answer: Any, question: str) -> bool:
    if isinstance(answer, str):
        return answer.startswith(question)
    return any(isinstance(message, dict) and question in (message.get("content"), message.get("value")) for message in answer)


def _split(line: Mapping[str, Any], prompt: str | None) -> dict[str, Any]:
    """Splits a preference whose answers contain the prompt: the common prefix is the prompt; each side keeps at least its last element."""
    chosen, rejected = (decoded(line[key], key) if prompt is not None else line[key] for key in ("chosen", "rejected"))
    if not isinstance(chosen, (str, list)) or type(chosen) is not type(rejected):
        got = f"{type_name(chosen)} and {type_name(rejected)}"
        raise BadLine(f"chosen and rejected: must both be text or both lists of messages, got {got}")
    if not chosen or not rejected:
        raise BadLine("chosen and rejected: must not be empty, got an empty one")
    length = min(common(chosen, rejected), len(chosen) - 1, len(rejected) - 1)
    if length and isinstance(chosen, str) and chosen[length - 1] == " ":
        # The space belongs to the next word, as in tokenizers.
        length -= 1
    prompt_messages = chosen[:length]
    if prompt is None and not prompt_messages:
        raise BadLine("chosen and rejected: must begin with the prompt, or stand beside prompt, got different beginnings")
    if prompt is not None:
        if not prompt_messages:
            prompt_messages = [{"role": "user", "content": prompt}]
        elif all(message.get("content", message.get("value")) != prompt for message in prompt_messages if isinstance(message, dict)):
            raise BadLine(f"prompt: must be the text of one of the turns that both answers begin with, got {prompt[:60]!r}", IGNORE)
    return {"prompt": prompt_messages, "chosen": chosen[length:], "rejected": rejected[length:]}
