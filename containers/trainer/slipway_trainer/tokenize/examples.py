"""Converts post-training data to tokens and loss masks: conversations, prompts with completions, and preferences.

The formats are those of keys.py. Tests compare tokens and masks with Hugging Face TRL.
"""

import argparse
import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from slipway_trainer.exits import DataFailed, InvalidRun
from slipway_trainer.tokenize.chat_template import ChatTemplate, TemplateFailed
from slipway_trainer.tokenize.conversations import Chat, Conversation, common, ends_in_marker
from slipway_trainer.tokenize.formats import Line, LineReader, shape_of
from slipway_trainer.tokenize.messages import BadLine, Turns
from slipway_trainer.tokenize.tokenizers import Tokenizer

Templates = tuple[ChatTemplate | None, ChatTemplate | None]
#: Changes with the tokens and masks that lines become, so that shards of an earlier version are not continued.
_READING = 3
_JOINED = (
    "{} conversations have turns that the chat template renders in another way when others follow; they were joined as each is generated"
)
_ENDLESS = "{} conversations have turns that end in no special token; a model that is trained on them may not stop"


class Example(NamedTuple):
    """A document. `targets`: 1 for each token with a loss."""

    tokens: list[int]
    targets: bytearray


#: The kind of shards by the format of the lines.
KINDS = {"messages": "sft", "completion": "sft", "preference": "dpo"}
_KEYS = {"sft": "messages, or prompt and completion,", "dpo": "chosen and rejected"}


class ExampleReader:
    """Converts lines of one kind, `sft` or `dpo`, to examples."""

    def __init__(self, kind: str, tokenizer: Tokenizer, templates: Templates, trains_all: bool, ignored: Collection[str] = ()) -> None:
        """`templates`: the chat template, and a separate template for conversations with tools if the tokenizer has one. `trains_all`: all
        tokens of a conversation or completion have a loss, not only those of the assistant. `ignored`: keys to leave out."""
        self.kind, self._tokenizer, self._trains_all = kind, tokenizer, trains_all
        self._template, self._tool_template = templates
        #: What determines the tokens and masks beside the data and the tokenizer.
        self.made_with = [_READING, kind, trains_all, [one.source if one else "" for one in templates], sorted(ignored)]
        self._lines = LineReader(ignored, " ".join(template.source for template in templates if template is not None))
        self._notes: Counter[str] = Counter()

    @property
    def notes(self) -> list[str]:
        """What to know about the lines that were read, with the number of lines."""
        return [what.format(count) for what, count in self._notes.items()]

    def read(self, given: Any, place: str) -> list[Example]:
        """One example for a line of fine-tuning data, two (chosen and rejected) for a preference. Raises DataFailed with the position."""
        try:
            line = self._line(given)
            examples = {"messages": self._conversation, "completion": self._completion, "preference": self._preference}[line.shape](line)
            for example in examples:
                # The first token has no context from which it could be predicted.
                example.targets[:1] = bytes(len(example.targets[:1]))
                if not any(example.targets):
                    raise BadLine("must have a token to train on after its first one, got none")
            return examples
        except TemplateFailed as error:
            raise DataFailed(f"{place}: the chat template rejected it ({error}); fix the line or remove it") from error
        except BadLine as error:
            raise DataFailed(f"{place}: {error}; {error.fix}") from error

    def _line(self, given: Any) -> Line:
        if not isinstance(given, dict):
            raise BadLine(f"must be one JSON object per line, got {type(given).__name__}")
        shape = shape_of(given)
        if shape is None or KINDS[shape] != self.kind:
            raise BadLine(f"must have the keys of {_KEYS[self.kind]} as the first line has, got {', '.join(given) or 'none'}")
        try:
            json.dumps(given, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as error:
            raise BadLine(f"must have text of whole characters, got {error.object[error.start]!r}", "remove the line") from error
        line = self._lines.read(given)
        self._notes.update("{} lines have " + note.replace("{", "{{").replace("}", "}}") for note in line.notes)
        return line

    def _conversation(self, line: Line) -> list[Example]:
        messages, trained = line.parts["messages"]
        chat = self._chat(line)
        if self._trains_all:
            ids = self._tokenizer.encode_chat(chat.whole(messages)).ids
            return [Example(ids, bytearray([1]) * len(ids))]
        conversation = chat.conversation(messages, trained)
        if not conversation.turns:
            raise BadLine("messages: must have a turn of the assistant with a loss, got none")
        self._note(conversation)
        return [self._masked(conversation)]

    def _note(self, conversation: Conversation) -> None:
        markers = self._tokenizer.markers
        # Several marks of a template may form one turn.
        last = {turn.message: conversation.text[turn.begin : turn.end] for turn in conversation.turns}
        if conversation.is_joined:
            self._notes[_JOINED] += 1
        if not all(ends_in_marker(text, markers) for text in last.values()):
            self._notes[_ENDLESS] += 1

    def _masked(self, conversation: Conversation) -> Example:
        encoded = self._tokenizer.encode_chat(conversation.text)
        targets = bytearray(len(encoded.ids))
        for turn in conversation.turns:
            first, last = encoded.token_at(turn.begin), encoded.token_at(turn.end - 1)
            if first is not None and turn.end > turn.begin:
                behind = encoded.token_at(turn.end) if turn.end < len(conversation.text) else len(targets)
                # A character may be several tokens, of which `last` is the first.
                stop = len(targets) if last is None else max(last + 1, behind or 0)
                targets[first:stop] = bytearray([1]) * (stop - first)
        return Example(encoded.ids, targets)

    def _completion(self, line: Line) -> list[Example]:
        ids = self._joined(line, "completion")
        return [_behind(ids, 0 if self._trains_all else common(self._prompt_ids(line), ids))]

    def _preference(self, line: Line) -> list[Example]:
        prompt_ids, both = self._prompt_ids(line), [self._joined(line, side) for side in ("chosen", "rejected")]
        begin = min(common(prompt_ids, ids) for ids in both)
        return [_behind(ids, begin) for ids in both]

    def _prompt_ids(self, line: Line) -> list[int]:
        prompt = line.parts["prompt"]
        if isinstance(prompt, Turns):
            return self._tokenizer.encode_chat(self._chat(line).text(prompt.messages, True)).ids
        return self._tokenizer.encode_plain(prompt)

    def _joined(self, line: Line, key: str) -> list[int]:
        """The prompt with an answer. Text ends in the end-of-text token."""
        prompt, answer = line.parts["prompt"], line.parts[key]
        if isinstance(prompt, Turns):
            return self._tokenizer.encode_chat(self._chat(line).closed(prompt.messages + answer.messages)).ids
        end = self._tokenizer.end_of_text_token
        return self._tokenizer.encode_plain(prompt + answer + ("" if answer.endswith(end) else end))

    def _chat(self, line: Line) -> Chat:
        template = self._tool_template if line.extra["tools"] is not None and self._tool_template is not None else self._template
        if template is None:
            raise BadLine("must be used with a chat template, and the tokenizer has none", "set tokenizer.chatTemplate")
        return Chat(template, line.extra, self._tokenizer.markers)


def _behind(ids: list[int], begin: int) -> Example:
    return Example(ids, bytearray(begin) + bytearray([1]) * (len(ids) - begin))


def open_reader(kind: str, given: argparse.Namespace, tokenizer: Tokenizer) -> ExampleReader:
    """The reader of lines of a kind, `sft` or `dpo`. Raises InvalidRun for a template that cannot be used."""
    templates = _chat_template(given.chat_template, tokenizer), None
    if tokenizer.tool_template and not given.chat_template:
        templates = templates[0], ChatTemplate(tokenizer.tool_template, tokenizer.special_tokens)
    ignored = [key.strip() for key in given.ignore_keys.split(",") if key.strip()]
    return ExampleReader(kind, tokenizer, templates, trains_all=given.train_on == "all", ignored=ignored)


def end_note(token: int | None, tokenizer: Tokenizer) -> str:
    """What to do where a server does not stop at the token that ends turns; "" otherwise."""
    if token is None or token in tokenizer.ends:
        return ""
    ends = ", ".join(tokenizer.decode([end]) for end in sorted(tokenizer.ends))
    return (
        f"turns end in {tokenizer.decode([token])}, which does not end a text for this tokenizer ({ends}): the config.json of an export "
        "names both; a generation_config.json that is served with it must do the same"
    )


def _chat_template(given: str, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The requested template (its text or path), or the tokenizer's own."""
    source = given or tokenizer.chat_template
    if given and "{%" not in given and "{{" not in given:
        if not Path(given).is_file():
            raise InvalidRun(
                f"tokenizer.chatTemplate: must be a Jinja template, or the path of one in an input of the job, got {given}; "
                "add the file to an input, or write the template"
            )
        source = Path(given).read_text(encoding="utf-8")
    return ChatTemplate(source, tokenizer.special_tokens) if source else None
