"""Converts post-training data to tokens and loss masks: conversations, prompts with completions, and preferences.

The formats are those of Hugging Face TRL (https://huggingface.co/docs/trl/dataset_formats, 2026-11-22), and tests compare the tokens with
TRL. The keys of a line determine its format.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from slipway_trainer.exits import DataFailed
from slipway_trainer.tokenize.chat_template import ChatTemplate, Rendered, TemplateFailed
from slipway_trainer.tokenize.tokenizers import Tokenizer

Line = Mapping[str, Any]
Templates = tuple[ChatTemplate | None, ChatTemplate | None]


class Example(NamedTuple):
    """A document. `targets`: 1 for each token with a loss."""

    tokens: list[int]
    targets: bytearray


class BadLine(Exception):
    """A problem with a line, without its position."""


def shape_of(line: Line) -> str | None:
    """The format of a line according to its keys: `preference`, `completion` or `messages`; None for others."""
    if "chosen" in line and "rejected" in line:
        return "preference"
    if "prompt" in line and "completion" in line:
        return "completion"
    return "messages" if "messages" in line else None


#: The kind of shards by the format of the lines.
KINDS = {"messages": "sft", "completion": "sft", "preference": "dpo"}


class ExampleReader:
    """Converts lines of one kind, `sft` or `dpo`, to examples."""

    def __init__(self, kind: str, tokenizer: Tokenizer, templates: Templates, trains_all: bool) -> None:
        """`templates`: the chat template, and a separate template for conversations with tools if the tokenizer has one. `trains_all`: all
        tokens of a conversation or completion have a loss, not only those of the assistant."""
        self.kind, self._tokenizer, self._trains_all = kind, tokenizer, trains_all
        self._template, self._tool_template = templates

    def read(self, line: Any, place: str) -> list[Example]:
        """One example for a line of fine-tuning data, two (chosen and rejected) for a preference. Raises DataFailed with the position."""
        try:
            if not isinstance(line, dict):
                raise BadLine(f"must be one JSON object per line, got {type(line).__name__}")
            shape = shape_of(line)
            if shape is None or KINDS[shape] != self.kind:
                raise BadLine(f"must have the keys of {_KEYS[self.kind]} as the first line has, got {', '.join(line) or 'none'}")
            examples = {"messages": self._conversation, "completion": self._completion, "preference": self._preference}[shape](line)
            for example in examples:
                # The first token has no context from which it could be predicted.
                example.targets[:1] = bytes(len(example.targets[:1]))
                if not any(example.targets):
                    raise BadLine("must have a token to train on after its first one, got none")
            return examples
        except (BadLine, TemplateFailed) as error:
            what = f"the chat template rejected it ({error})" if isinstance(error, TemplateFailed) else str(error)
            raise DataFailed(f"{place}: {what}; fix the line or remove it") from error

    def _conversation(self, line: Line) -> list[Example]:
        messages, extra = _messages(line, "messages"), _extra(line)
        rendered = self._rendered(messages, extra)
        encoded = self._tokenizer.encode_chat(rendered.text)
        if self._trains_all:
            return [Example(encoded.ids, bytearray([1]) * len(encoded.ids))]
        turns = rendered.turns if self._chat(extra).marks_turns else self._turns(messages, rendered.text, extra)
        if not turns:
            raise BadLine("messages: must have a turn of the assistant, got none")
        targets = bytearray(len(encoded.ids))
        for begin, end in turns:
            first, last = encoded.token_at(begin), encoded.token_at(end - 1)
            if first is not None and end > begin:
                stop = len(targets) if last is None else last + 1
                targets[first:stop] = bytearray([1]) * (stop - first)
        return [Example(encoded.ids, targets)]

    def _turns(self, messages: Sequence[Mapping[str, Any]], whole: str, extra: Mapping[str, Any]) -> list[tuple[int, int]]:
        """Start and end of the assistant's messages for a template that does not mark them: from the end of the generation prompt to the
        end of the message."""
        found = []
        for number, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            begin = 0
            if number:
                begin = _common(self._rendered(messages[:number], extra, generation_prompt=True).text, whole)
            through = self._rendered(messages[: number + 1], extra).text
            if not whole.startswith(through):
                raise BadLine(
                    f"messages[{number}]: must have the same rendering whether or not messages follow, or the chat template must mark the "
                    "turns of the assistant with {% generation %}, got a template that does neither"
                )
            found.append((begin, len(through)))
        return found

    def _completion(self, line: Line) -> list[Example]:
        (prompt, completion), extra = self._sides(line, "completion"), _extra(line)
        ids = self._joined(prompt, completion, extra)
        begin = _common(self._asked(prompt, extra), ids)
        return [_behind(ids, 0 if self._trains_all else begin)]

    def _preference(self, line: Line) -> list[Example]:
        if "prompt" not in line:
            line = {**line, **_shared_prompt(line)}
        prompt, chosen = self._sides(line, "chosen")
        rejected = self._sides(line, "rejected")[1]
        if chosen == rejected:
            raise BadLine("chosen: must differ from rejected, got the same")
        extra = _extra(line)
        asked, both = self._asked(prompt, extra), [self._joined(prompt, side, extra) for side in (chosen, rejected)]
        begin = min(_common(asked, ids) for ids in both)
        return [_behind(ids, begin) for ids in both]

    def _sides(self, line: Line, key: str) -> tuple[Any, Any]:
        """The prompt and the answer: both text, with the end-of-text token after the answer, or both messages."""
        prompt, answer = line["prompt"], line[key]
        if isinstance(prompt, str) and isinstance(answer, str):
            end = self._tokenizer.end_of_text_token
            return prompt, answer if answer.endswith(end) else answer + end
        if isinstance(prompt, str) or isinstance(answer, str):
            raise BadLine(f"prompt and {key}: must both be text or both lists of messages, got {_type(prompt)} and {_type(answer)}")
        return _messages(line, "prompt"), _messages(line, key)

    def _asked(self, prompt: Any, extra: Mapping[str, Any]) -> list[int]:
        if isinstance(prompt, str):
            return self._tokenizer.encode_plain(prompt)
        return self._tokenizer.encode_chat(self._rendered(prompt, extra, generation_prompt=True).text).ids

    def _joined(self, prompt: Any, answer: Any, extra: Mapping[str, Any]) -> list[int]:
        if isinstance(prompt, str):
            return self._tokenizer.encode_plain(prompt + answer)
        return self._tokenizer.encode_chat(self._rendered([*prompt, *answer], extra).text).ids

    def _chat(self, extra: Mapping[str, Any]) -> ChatTemplate:
        template = self._tool_template if extra["tools"] is not None and self._tool_template is not None else self._template
        if template is None:
            raise BadLine("must be used with a chat template, and the tokenizer has none; set tokenizer.chatTemplate")
        return template

    def _rendered(self, messages: Sequence[Mapping[str, Any]], extra: Mapping[str, Any], generation_prompt: bool = False) -> Rendered:
        return self._chat(extra).render(messages, generation_prompt=generation_prompt, **extra)


_KEYS = {"sft": "messages, or prompt and completion,", "dpo": "chosen and rejected"}


def _behind(ids: list[int], begin: int) -> Example:
    return Example(ids, bytearray(begin) + bytearray([1]) * (len(ids) - begin))


def _common(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Length of the common prefix of two sequences."""
    length = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        length += 1
    return length


def _shared_prompt(line: Line) -> dict[str, Any]:
    """Splits a preference without a prompt: the common prefix is the prompt; each side keeps at least its last element."""
    chosen, rejected = line["chosen"], line["rejected"]
    if not isinstance(chosen, (str, list)) or type(chosen) is not type(rejected):
        raise BadLine(f"chosen and rejected: must both be text or both lists of messages, got {_type(chosen)} and {_type(rejected)}")
    if not chosen or not rejected:
        raise BadLine("chosen and rejected: must not be empty, got an empty one")
    length = min(_common(chosen, rejected), len(chosen) - 1, len(rejected) - 1)
    if length and isinstance(chosen, str) and chosen[length - 1] == " ":
        # The space belongs to the next word, as in tokenizers.
        length -= 1
    return {"prompt": chosen[:length], "chosen": chosen[length:], "rejected": rejected[length:]}


def _messages(line: Line, key: str) -> list[Mapping[str, Any]]:
    found = line[key]
    if not isinstance(found, list) or not found:
        raise BadLine(f"{key}: must be a list of messages, got {_type(found)}")
    for number, message in enumerate(found):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise BadLine(f"{key}[{number}]: must be a message with a role and content, got {json.dumps(message)[:80]}")
        if message.get("content") is None and not message.get("tool_calls"):
            raise BadLine(f"{key}[{number}]: must have content or tool_calls, got {', '.join(message)}")
    return found


def _extra(line: Line) -> dict[str, Any]:
    """Additional values for the template: tools, as a list or JSON, and `chat_template_kwargs`."""
    tools, given = line.get("tools"), line.get("chat_template_kwargs") or {}
    if isinstance(tools, str):
        try:
            tools = json.loads(tools)
        except ValueError as error:
            raise BadLine(f"tools: must be a list, or the JSON of one ({error})") from error
    if not isinstance(given, dict):
        raise BadLine(f"chat_template_kwargs: must be an object, got {_type(given)}")
    return {"tools": tools or None, **given}


def _type(value: Any) -> str:
    names = {str: "text", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), type(value).__name__) if value != [] else "an empty list"
