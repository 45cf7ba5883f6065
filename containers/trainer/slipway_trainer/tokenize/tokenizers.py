"""Tokenizers: convert text to token ids."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from slipway_trainer.exits import InvalidRun

#: Default end-of-text token if neither --end-of-text nor tokenizer_config.json specifies one.
END_OF_TEXT = "</s>"


class Encoded(NamedTuple):
    """Token ids of a text. `token_at`: index of the token that contains a character, None if there is none."""

    ids: list[int]
    token_at: Callable[[int], int | None]


class ByteTokenizer:
    """Converts text to token ids, and has the properties that chat templates need. Each byte is a token. Token 256 ends a document; it is
    written as `<|endoftext|>` in chat templates and completions."""

    name = "byte"
    #: The files that define it.
    files: Sequence[Path] = ()
    vocabulary_size = 257
    #: Id of the token that ends every document.
    end_of_text = 256
    #: The text of this token.
    end_of_text_token = "<|endoftext|>"
    #: Ids of tokens at which a server of the model stops.
    ends = frozenset([end_of_text])
    #: The tokenizer's chat template, and a separate one for conversations with tools; None = it has none.
    chat_template: str | None = None
    tool_template: str | None = None
    #: `bos_token`, `eos_token` and others by name, for chat templates.
    special_tokens: Mapping[str, str] = {"bos_token": "", "eos_token": end_of_text_token}
    #: Matches the special tokens in a rendered template. This one has no others; this is how most templates write theirs.
    markers = re.compile(r"<\|[^|<>\s]+\|>")

    def encode(self, text: bytes) -> list[int]:
        """Encodes a document without special tokens."""
        return list(text)

    def encode_plain(self, text: str) -> list[int]:
        """Encodes a prompt, or a prompt with its completion, with the special tokens that the tokenizer adds to a text."""
        return self.encode_chat(text).ids

    def encode_chat(self, text: str) -> Encoded:
        """Encodes a rendered chat template, which already contains the special tokens."""
        ids: list[int] = []
        #: For each token, the index of its first character.
        characters: list[int] = []
        place = 0
        for number, part in enumerate(text.split(self.end_of_text_token)):
            if number:
                ids.append(self.end_of_text)
                characters.append(place)
                place += len(self.end_of_text_token)
            for character in part:
                encoded = character.encode("utf-8", "replace")
                ids.extend(encoded)
                characters.extend([place] * len(encoded))
                place += 1

        def token_at(character: int) -> int | None:
            """The first token of the last group of tokens that begins at or before the character."""
            last = bisect_right(characters, character) - 1
            return bisect_left(characters, characters[last]) if last >= 0 else None

        return Encoded(ids, token_at)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, with special tokens."""
        ended = b"".join(self.end_of_text_token.encode() if one == self.end_of_text else bytes([one]) for one in ids)
        return ended.decode("utf-8", "replace")


class FileTokenizer(ByteTokenizer):
    """A Hugging Face `tokenizer.json`, read with the image's `tokenizers` package, with the chat template and the special tokens from
    tokenizer_config.json and chat_template.jinja in the same folder."""

    def __init__(self, path: Path, end_of_text: str | None) -> None:
        try:
            from tokenizers import Tokenizer as Loaded
        except ImportError as error:
            raise InvalidRun(
                "code.arguments.tokenizer: the image must have the `tokenizers` package; choose one that has it (image.uri)"
            ) from error
        beside = path.with_name("tokenizer_config.json")
        config = _json_of(beside)
        self.files = [file for file in (path, beside) if file.is_file()]
        try:
            self._tokenizer = Loaded.from_file(str(path))
        except Exception as error:  # The package raises no class of its own.
            must = f"must be a tokenizer.json that the image's `tokenizers` package reads, got {path.name} ({error})"
            raise InvalidRun(
                f"code.arguments.tokenizer: {must}; save it again with AutoTokenizer.save_pretrained, or use a newer package"
            ) from error
        _add_tokens(self._tokenizer, config)
        # Files of fine-tuned models often enable both, which would truncate and pad documents.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.name = path.name
        # Ids may have holes.
        self.vocabulary_size = max(self._tokenizer.get_vocab().values()) + 1
        special = [token.content for token in self._tokenizer.get_added_tokens_decoder().values() if token.special]
        self.markers = re.compile("|".join(map(re.escape, sorted(special, key=len, reverse=True))) or "(?!)")
        self.special_tokens = _special_tokens(config)
        templates = _templates_of(path, config)
        self.chat_template, self.tool_template = templates.get("default"), templates.get("tool_use")
        self.end_of_text_token = end_of_text or self.special_tokens.get("eos_token", END_OF_TEXT)
        found = self._tokenizer.token_to_id(self.end_of_text_token)
        if found is None:
            must = f"must be a token of {path.name}, got {self.end_of_text_token}"
            raise InvalidRun(f"code.arguments.end-of-text: {must}; name the token that ends a document")
        self.end_of_text = found
        self.ends = frozenset({found, *_ends_beside(path)})

    def encode(self, text: bytes) -> list[int]:
        return self._tokenizer.encode(text.decode("utf-8", "replace"), add_special_tokens=False).ids

    def encode_plain(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=True).ids

    def encode_chat(self, text: str) -> Encoded:
        found = self._tokenizer.encode(text, add_special_tokens=False)
        return Encoded(found.ids, found.char_to_token)

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False)


def _json_of(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidRun(f"{path.name} next to the tokenizer: must be JSON ({error}); copy it again") from error
    return found if isinstance(found, dict) else {}


def _add_tokens(tokenizer: Any, config: Mapping[str, Any]) -> None:
    """Adds the tokens of tokenizer_config.json that tokenizer.json lacks, as transformers does: otherwise they would be split."""
    from tokenizers import AddedToken

    decoder = config.get("added_tokens_decoder")
    entries = sorted((int(number), entry) for number, entry in decoder.items()) if isinstance(decoder, dict) else []
    known = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    for number, entry in entries:
        if entry["content"] in known:
            continue
        flags = {name: entry[name] for name in ("lstrip", "rstrip", "normalized", "single_word", "special") if name in entry}
        tokenizer.add_tokens([AddedToken(entry["content"], **flags)])
        found = tokenizer.token_to_id(entry["content"])
        if found != number:
            must = f"must have the ids that follow those of tokenizer.json, got {number} for {entry['content']}, which is {found}"
            raise InvalidRun(f"added_tokens_decoder of tokenizer_config.json next to the tokenizer: {must}; save both files again")


def _ends_beside(path: Path) -> list[int]:
    """`eos_token_id` of generation_config.json beside the tokenizer, otherwise of config.json: one id or several."""
    for name in ("generation_config.json", "config.json"):
        found = _json_of(path.with_name(name)).get("eos_token_id")
        if found is not None:
            return [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, int)]
    return []


def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Special tokens by name; each is text, or an object with the text in `content`."""
    found = {}
    for name, value in config.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            found[name] = text
    return found


def _templates_of(path: Path, config: Mapping[str, Any]) -> dict[str, str]:
    """Templates by name: from chat_template.jinja and additional_chat_templates/ (newer tokenizers), otherwise from tokenizer_config.json,
    which contains one or a list. transformers uses `tool_use` for conversations with tools and `default` for others."""
    own, others = path.with_name("chat_template.jinja"), path.with_name("additional_chat_templates")
    files = {one.stem: one for one in others.glob("*.jinja")} | ({"default": own} if own.is_file() else {})
    if files:
        return {name: file.read_text(encoding="utf-8") for name, file in files.items()}
    found = config.get("chat_template")
    if isinstance(found, list):
        return {entry["name"]: entry["template"] for entry in found if isinstance(entry, dict) and {"name", "template"} <= {*entry}}
    return {"default": found} if isinstance(found, str) else {}


#: What converts text to token ids.
Tokenizer = ByteTokenizer | FileTokenizer


def load_tokenizer(name: str, end_of_text: str | None) -> Tokenizer:
    """Loads `byte`, or the tokenizer.json at a path. Raises InvalidRun if it cannot be used."""
    if name == "byte":
        return ByteTokenizer()
    path = Path(name)
    if not path.is_file():
        must = "must be `byte` or a tokenizer.json in a channel"
        raise InvalidRun(f"code.arguments.tokenizer: {must}, got {name}; add the file to an input of the job")
    return FileTokenizer(path, end_of_text)
