"""Text to token ids."""

from pathlib import Path
from typing import Protocol

from slipway_trainer.exits import Settings


class Tokenizer(Protocol):
    name: str
    vocabulary_size: int
    #: Ends every document.
    end_of_text: int

    def encode(self, text: bytes) -> list[int]: ...


class ByteTokenizer:
    """Each byte of the text is a token; 256 ends a document."""

    name = "byte"
    vocabulary_size = 257
    end_of_text = 256

    def encode(self, text: bytes) -> list[int]:
        return list(text)


class FileTokenizer:
    """A `tokenizer.json` of Hugging Face, read by the `tokenizers` package of the image."""

    def __init__(self, path: Path, end_of_text: str) -> None:
        try:
            from tokenizers import Tokenizer as Loaded
        except ImportError as error:
            raise Settings(["--tokenizer: the image must have the `tokenizers` package; choose one that has it (image.uri)"]) from error
        self._tokenizer = Loaded.from_file(str(path))
        # Files of fine-tuned models often carry both: documents would be cut, and filled up with padding tokens.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.name = path.name
        self.vocabulary_size = self._tokenizer.get_vocab_size()
        found = self._tokenizer.token_to_id(end_of_text)
        if found is None:
            raise Settings([f"--end-of-text: must be a token of {path.name}, got {end_of_text}"])
        self.end_of_text = found

    def encode(self, text: bytes) -> list[int]:
        return self._tokenizer.encode(text.decode("utf-8", "replace"), add_special_tokens=False).ids


def load_tokenizer(name: str, end_of_text: str) -> Tokenizer:
    """`byte`, or the path of a tokenizer.json."""
    if name == "byte":
        return ByteTokenizer()
    path = Path(name)
    if not path.is_file():
        raise Settings([f"--tokenizer: must be `byte` or a tokenizer.json in a channel, got {name}"])
    return FileTokenizer(path, end_of_text)
