"""Opens the reader of post-training data with the tokenizer and the templates that the arguments name."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from slipway_trainer.exits import Settings
from slipway_trainer.tokenize.chat_template import ChatTemplate
from slipway_trainer.tokenize.documents import examples
from slipway_trainer.tokenize.examples import ExampleReader
from slipway_trainer.tokenize.tokenizers import Tokenizer


def open_reader(kind: str, given: argparse.Namespace, tokenizer: Tokenizer) -> ExampleReader:
    """The reader of lines of a kind, `sft` or `dpo`. Raises Settings for a template that cannot be used."""
    templates = _chat_template(given.chat_template, tokenizer), _tool_template(given.chat_template, tokenizer)
    ignored = [key.strip() for key in given.ignore_keys.split(",") if key.strip()]
    return ExampleReader(kind, tokenizer, templates, trains_all=given.train_on == "all", ignored=ignored)


def end_of_turn(files: Sequence[Path], reader: ExampleReader, tokenizer: Tokenizer) -> int | None:
    """The special token that ends what is trained in the first row; None if there is none."""
    line = next(iter(examples(files, (0, 0), reader)), None)
    if line is None:
        return None
    pairs = zip(line.examples[0].tokens, line.examples[0].targets, strict=True)
    trained = tokenizer.decode([token for token, target in pairs if target]).rstrip()
    last = next((marker for marker in tokenizer.markers.finditer(trained) if marker.end() == len(trained)), None)
    ids = tokenizer.encode_chat(last.group()).ids if last else []
    return ids[0] if len(ids) == 1 else None


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
            raise Settings(
                f"tokenizer.chatTemplate: must be a Jinja template, or the path of one in an input of the job, got {given}; "
                "add the file to an input, or write the template"
            )
        source = Path(given).read_text(encoding="utf-8")
    return ChatTemplate(source, tokenizer.special_tokens) if source else None


def _tool_template(given: str, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The tokenizer's template for conversations with tools; None if it has none, or if another template is requested."""
    return ChatTemplate(tokenizer.tool_template, tokenizer.special_tokens) if tokenizer.tool_template and not given else None
