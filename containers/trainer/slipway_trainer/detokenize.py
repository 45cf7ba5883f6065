"""Decodes token ids to text for people to read. Does not import PyTorch."""

from collections.abc import Callable, Sequence
from pathlib import Path

from slipway_trainer.exits import Settings

#: `text(ids)`; None = no tokenizer for the data is available.
Detokenizer = Callable[[Sequence[int]], str] | None
OPTION = "code.arguments.sample-tokenizer"
#: Token ids of the byte tokenizer below this are bytes, those above are special tokens.
_BYTES = 256


def find_detokenizer(requested: str, of_data: str | None, weights: Path | None) -> Detokenizer:
    """The requested detokenizer: `byte`, or the path of a tokenizer.json. By default, the byte tokenizer if the data was tokenized with it,
    otherwise tokenizer.json next to the initial weights if it exists and can be read.

    `of_data`: the tokenizer's name in the index of the shards. Raises Settings if a requested tokenizer cannot be read.
    """
    if requested == "byte" or (not requested and of_data == "byte"):
        return _bytes_as_text
    if requested:
        return _from_file(Path(requested))
    beside = weights / "tokenizer.json" if weights is not None else None
    if beside is None or not beside.is_file():
        return None
    try:
        return _from_file(beside)
    except Settings:
        return None


def _bytes_as_text(ids: Sequence[int]) -> str:
    return bytes(one for one in ids if one < _BYTES).decode("utf-8", "replace")


def _from_file(path: Path) -> Detokenizer:
    if not path.is_file():
        raise Settings([f"{OPTION}: must be `byte` or a tokenizer.json in a channel, got {path}; add the channel that has it to data"])
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        issue = f"{OPTION}: must be used with an image that has the `tokenizers` package, got {path} in one without; set image.uri"
        raise Settings([issue]) from error
    try:
        loaded = Tokenizer.from_file(str(path))
    except Exception as error:  # The package raises plain Exception.
        raise Settings(
            [
                f"{OPTION}: must be a tokenizer.json that the image's `tokenizers` package reads, got {path} ({error}); "
                "convert it with the package of the image"
            ]
        ) from error
    return lambda ids: loaded.decode(list(ids), skip_special_tokens=True)
