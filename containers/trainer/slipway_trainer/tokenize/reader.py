"""Opens the reader of post-training data with the tokenizer and the templates that the arguments name."""

import argparse
from pathlib import Path

from slipway_trainer.exits import Settings
from slipway_trainer.tokenize.chat_template import ChatTemplate
from slipway_trainer.tokenize.examples import ExampleReader
from slipway_trainer.tokenize.tokenizers import Tokenizer


def open_reader(kind: str, asked: argparse.Namespace, tokenizer: Tokenizer) -> ExampleReader:
    """The reader of lines of a kind, `sft` or `dpo`. Raises Settings for a template that cannot be used."""
    templates = _chat_template(asked.chat_template, tokenizer), _tool_template(asked.chat_template, tokenizer)
    ignored = [key.strip() for key in asked.ignore_keys.split(",") if key.strip()]
    return ExampleReader(kind, tokenizer, templates, trains_all=asked.train_on == "all", ignored=ignored)


def _chat_template(asked: str, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The requested template (its text or path), or the tokenizer's own."""
    source = asked or tokenizer.chat_template
    if asked and "{%" not in asked and "{{" not in asked:
        if not Path(asked).is_file():
            raise Settings(
                [
                    f"tokenizer.chatTemplate: must be a Jinja template, or the path of one in an input of the job, got {asked}; "
                    "add the file to an input, or write the template"
                ]
            )
        source = Path(asked).read_text(encoding="utf-8")
    return ChatTemplate(source, tokenizer.special_tokens) if source else None


def _tool_template(asked: str, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The tokenizer's template for conversations with tools; None if it has none, or if another template is requested."""
    return ChatTemplate(tokenizer.tool_template, tokenizer.special_tokens) if tokenizer.tool_template and not asked else None
