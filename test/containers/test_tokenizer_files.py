"""Files of tokenizers as people have them (test/public/chat.md): the tokens are those of transformers, or the file is refused."""

import json
import os
import random
from pathlib import Path
from typing import Any

import chat_data as data
import pytest

pytest.importorskip("tokenizers")
pytestmark = pytest.mark.torch

from slipway_trainer.exits import InvalidRun  # noqa: E402
from slipway_trainer.tokenize.tokenizers import load_tokenizer  # noqa: E402

SEED = int(os.environ.get("SLIPWAY_TEST_SEED", random.randrange(1 << 30)))
#: Number of tokens of the tokenizer of the tests.
SIZE = 320


def with_config(folder: Path, **changes: Any) -> Path:
    """A tokenizer whose tokenizer_config.json has changes."""
    file = data.write_tokenizer(folder)
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | changes), encoding="utf-8")
    return file


def token(content: str, special: bool = True, **flags: bool) -> dict[str, Any]:
    return {"content": content, "special": special, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False} | flags


def test_tokens_that_only_the_config_has_are_whole(tmp_path: Path) -> None:
    # huggingface/transformers#27132
    decoder = {str(SIZE): token("<|call|>"), str(SIZE + 1): token("<tool>", special=False)}
    found = load_tokenizer(str(with_config(tmp_path, added_tokens_decoder=decoder)), None)
    assert found.encode_chat("<|call|><tool>").ids == [SIZE, SIZE + 1]
    assert found.vocabulary_size == SIZE + 2
    assert found.markers.fullmatch("<|call|>") and not found.markers.search("<tool>")


def test_law_texts_have_the_tokens_of_transformers_whatever_the_config_adds(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    rng = random.Random(SEED)
    for number in range(6):
        # The first ones are in tokenizer.json as well, with the same ids.
        known = {str(at): token(content) for at, content in enumerate(data.SPECIAL)}
        names = rng.sample(["<|call|>", "<tool>", "[INST]", "<|eot|>", "ab", "<think>"], rng.randint(0, 4))
        added = {str(SIZE + at): token(name, rng.random() < 0.5, lstrip=rng.random() < 0.3) for at, name in enumerate(names)}
        file = with_config(tmp_path / str(number), added_tokens_decoder=rng.choice([{}, known]) | added)
        ours, theirs = load_tokenizer(str(file), None), transformers.AutoTokenizer.from_pretrained(file.parent)
        for _ in range(20):
            text = "".join(rng.choices([*names, *data.SPECIAL, "a", "b ", "é", "<"], k=12))
            assert ours.encode_chat(text).ids == theirs(text, add_special_tokens=False)["input_ids"], (SEED, text)


@pytest.mark.parametrize(
    ("report", "name", "content"),
    [
        ("dphnAI/sonar#765", "tokenizer.json", '{"version": "1.0", "model": {"type": "of tomorrow"}}'),
        ("a sibling: the format of Mistral", "tekken.json", '{"config": {}, "vocab": []}'),
        ("a sibling: SentencePiece", "tokenizer.model", "\n\x0e\n\x05<unk>\x15\0\0"),
        ("a sibling: a pointer of Git LFS", "tokenizer.json", "version https://git-lfs.github.com/spec/v1\n"),
    ],
)
def test_a_file_that_the_package_does_not_read_is_refused_by_name(tmp_path: Path, report: str, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InvalidRun, match=f"code.arguments.tokenizer: must be a tokenizer.json that .* reads, got {name} .*; save it again"):
        load_tokenizer(str(tmp_path / name), None)


def test_a_token_with_an_id_that_does_not_follow_is_refused(tmp_path: Path) -> None:
    file = with_config(tmp_path, added_tokens_decoder={"400": token("<|call|>")})
    with pytest.raises(InvalidRun, match=r"must have the ids that follow those of tokenizer.json, got 400 for <\|call\|>, which is 320"):
        load_tokenizer(str(file), None)


def test_a_template_in_a_file_of_its_own_is_found(tmp_path: Path) -> None:
    # huggingface/text-generation-inference#3247
    file = with_config(tmp_path, chat_template=None)
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }}", encoding="utf-8")
    assert load_tokenizer(str(file), None).chat_template == "{{ messages[0].content }}"


def test_an_end_that_is_an_object_is_its_text(tmp_path: Path) -> None:
    # deepseek-ai/DeepSeek-Coder#90
    file = with_config(tmp_path, eos_token={"__type": "AddedToken", "content": "<|im_end|>", "lstrip": False})
    assert load_tokenizer(str(file), None).end_of_text == 3
