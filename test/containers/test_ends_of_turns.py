"""The token that ends a turn: it is in the index of the shards, in the export, and named where a server would not stop at it."""

import json
import os
import random
from pathlib import Path
from typing import Any

import chat_data as data
import pytest
from test_fine_tuning import job_of

from rank_world import run_ranks

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer.batches import Batches  # noqa: E402
from slipway_trainer.exits import InvalidRun  # noqa: E402
from slipway_trainer.published_config import with_end  # noqa: E402
from slipway_trainer.settings import resolve_settings  # noqa: E402
from slipway_trainer.shard_format import read_index  # noqa: E402

SEED = int(os.environ.get("SLIPWAY_TEST_SEED", random.randrange(1 << 30)))
#: Ids of the tokenizer of the tests.
END_OF_TEXT, END_OF_TURN = 0, 3


def shards_of(root: Path, lines: list[dict[str, Any]], beside: dict[str, Any] | None = None) -> Path:
    tokenizer = data.write_tokenizer(root / "tokenizer")
    if beside is not None:
        (tokenizer.parent / "generation_config.json").write_text(json.dumps(beside), encoding="utf-8")
    return data.tokenise(root, lines, tokenizer)


@pytest.mark.parametrize(
    ("lines", "end"),
    [(data.CONVERSATIONS, END_OF_TURN), (data.PREFERRED_TURNS, END_OF_TURN), (data.COMPLETIONS, END_OF_TEXT), (data.ASKED, END_OF_TURN)],
    ids=["conversations", "preferences", "text", "turns"],
)
def test_the_index_has_the_token_that_ends_what_is_trained(tmp_path: Path, lines: list[dict[str, Any]], end: int) -> None:
    assert read_index(shards_of(tmp_path, lines)).end_of_turn == end


def test_a_template_without_special_tokens_has_no_end(tmp_path: Path) -> None:
    plain = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    tokenizer = data.write_tokenizer(tmp_path / "tokenizer", plain)
    assert read_index(data.tokenise(tmp_path, data.CONVERSATIONS, tokenizer)).end_of_turn is None


@pytest.mark.parametrize(
    ("report", "beside", "noted"),
    [
        ("huggingface/trl#2059", None, True),
        ("hiyouga/LlamaFactory#7454", {"eos_token_id": END_OF_TEXT}, True),
        ("a model for chats", {"eos_token_id": [END_OF_TEXT, END_OF_TURN]}, False),
    ],
)
def test_an_end_at_which_a_server_does_not_stop_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], report: str, beside: dict[str, Any] | None, noted: bool
) -> None:
    shards_of(tmp_path, data.CONVERSATIONS, beside)
    note = "note: turns end in <|im_end|>, which does not end a text for this tokenizer (<|endoftext|>): "
    assert (note in capsys.readouterr().out) == noted, report


def test_the_export_of_a_base_model_that_was_trained_on_chats_stops_at_the_end_of_a_turn(tmp_path: Path) -> None:
    # huggingface/open-r1#663 and hiyouga/LlamaFactory#10834
    job = job_of("sft", model={"vocabularySize": 320}, training={"steps": 1}, arguments=["--export-weights"])
    code, output = run_ranks(tmp_path / "run", 1, job, {"train": shards_of(tmp_path, data.CONVERSATIONS)})
    assert code == 0, output
    assert json.loads((tmp_path / "run/model/config.json").read_text())["eos_token_id"] == END_OF_TURN


def test_fails_for_a_tokenizer_with_ids_beyond_the_vocabulary_of_the_model(tmp_path: Path) -> None:
    # EuroEval/EuroEval#52
    shards, job = shards_of(tmp_path, data.CONVERSATIONS), job_of("sft")
    with pytest.raises(InvalidRun, match="model.vocabularySize: must be at least the 320 of the data, got 300; increase it, or prepare"):
        Batches(shards, resolve_settings(job, job["arguments"], {}).training, 300, 0, 1)


def test_law_an_export_keeps_every_end_and_has_the_new_one_once() -> None:
    rng = random.Random(SEED)
    for _ in range(200):
        given: Any = rng.choice([None, rng.randrange(9), [rng.randrange(9) for _ in range(rng.randrange(4))]])
        token = rng.randrange(9)
        found, before = with_end(given, token), given if isinstance(given, list) else [] if given is None else [given]
        ends = found if isinstance(found, list) else [found]
        assert ends[: len(before)] == before and ends.count(token) == max(1, before.count(token)), (SEED, given, token)
