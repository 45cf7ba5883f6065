"""Fine-tuning from lines of JSON to steps: the tokenise step under the driver, packing, resuming, and what is refused."""

import json
import random
from pathlib import Path
from typing import Any

import chat_data as data
import pytest
from test_tokenize import processing_host, run_host

from fake_world import direct_checkpoints, job_json
from rank_world import events, losses_of, run_ranks, trainer_job

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer.batches import Batches  # noqa: E402
from slipway_trainer.examples import (  # noqa: E402
    TARGETS,
    TOKENS,
    Documents,
    PackedRows,
    packed,
    row_length,
)
from slipway_trainer.exits import DataFailed, InvalidRun  # noqa: E402
from slipway_trainer.loss import IGNORED  # noqa: E402
from slipway_trainer.settings import resolve_settings  # noqa: E402
from slipway_trainer.shard_format import read_index  # noqa: E402

#: With the byte tokenizer, which has no template of its own.
PLAIN_CHAT = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system here') }}{% endif %}"
    "{{ m.role[0] }}:{{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}a:{% endif %}"
)
CONVERSATIONS = [
    {"messages": [data.user("count"), data.assistant(" ".join(map(str, range(first, first + 2 + first % 9))))]} for first in range(40)
]
PREFERENCES = [{"prompt": f"{n} and", "chosen": f" {n + 1}" * (n % 5 + 1), "rejected": " nothing at all"} for n in range(24)]


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chats")
    return data.tokenise(folder, CONVERSATIONS, Path("byte"), "--chat-template", PLAIN_CHAT, "--shard-tokens", "400")


@pytest.fixture(scope="module")
def preferences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data.tokenise(tmp_path_factory.mktemp("preferences"), PREFERENCES, Path("byte"))


def job_of(objective: str, **changes: Any) -> dict[str, Any]:
    training = {"objective": objective, "sequenceLength": 96, "globalBatchSize": 4, "steps": 20} | changes.pop("training", {})
    return trainer_job(training=training, **changes)


def text_of(shards: Path, number: int) -> tuple[str, str]:
    """A document as text, and its targets as text."""
    documents = Documents(read_index(shards))
    sample = torch.full((3, documents.lengths[number]), IGNORED)
    documents.fill(sample, 0, number, 10_000)
    texts = [[token for token in row.tolist() if token not in (IGNORED, 256)] for row in (sample[TOKENS], sample[TARGETS])]
    return bytes(texts[0]).decode(), bytes(texts[1]).decode()


def test_the_step_under_the_driver_reads_a_tokenizer_and_a_template_in_an_input(tmp_path: Path) -> None:
    chats = tmp_path / "chats"
    data.write_lines(chats / "a.jsonl", data.CONVERSATIONS)
    base = processing_host(tmp_path, "algo-1", ["algo-1"], chats, "FullyReplicated")
    inputs = base / "processing/input"
    data.write_tokenizer(inputs / "tokenizer", template=None)
    (inputs / "tokenizer/chat.jinja").write_text(data.UNMARKED)
    words = ["--tokenizer", "/opt/ml/processing/input/tokenizer/tokenizer.json", "--data-channel", "raw"]
    words += ["--chat-template", "/opt/ml/processing/input/tokenizer/chat.jinja", "--train-on", "assistant"]
    (inputs / "job/job.json").write_text(json.dumps(job_json(entryPoint="builtin-tokenize", arguments=words)))
    done = run_host(base)
    assert done.returncode == 0, done.stdout
    said = events(done.stdout, "tokens")[0]
    assert said["documents"] == len(data.CONVERSATIONS) and 0 < said["targets"] < said["tokens"]


def test_the_loss_is_on_each_turn_of_the_assistant(tmp_path: Path) -> None:
    line = {"messages": [data.user("one"), data.assistant("two"), data.user("three"), data.assistant("four")]}
    shards = data.tokenise(tmp_path, [line], Path("byte"), "--chat-template", PLAIN_CHAT)
    assert text_of(shards, 0) == ("u:one\na:two\nu:three\na:four\n", "two\nfour\n")


def test_a_restart_repeats_no_finished_shard_and_ends_with_the_same_data(tmp_path: Path) -> None:
    words = (Path("byte"), "--chat-template", PLAIN_CHAT, "--shard-tokens", "300")
    whole = data.tokenise(tmp_path, CONVERSATIONS, *words)
    files = {path.name: path.read_bytes() for path in whole.iterdir()}
    index = json.loads(files["index-00000.json"])
    assert len(index["shards"]) > 3 and index["schema"] == 2
    second = index["shards"][1]["name"].removesuffix(".bin")
    for path in whole.glob("tokens-*"):
        if path.name.split(".")[0] > second:
            path.unlink()
    begun = Documents(read_index_of(whole, index, 2)).lengths
    # Where line numbers say how many documents the first two shards hold.
    (whole / "index-00000.json").write_text(json.dumps(index | {"shards": index["shards"][:2], "next": [0, len(begun)], "complete": False}))
    before = (whole / f"{second}.bin").stat().st_mtime_ns
    again = data.tokenise(tmp_path, CONVERSATIONS, *words)
    assert {path.name: path.read_bytes() for path in again.iterdir()} == files
    assert (whole / f"{second}.bin").stat().st_mtime_ns == before


def read_index_of(folder: Path, index: dict[str, Any], shards: int) -> Any:
    (folder / "index-00000.json").write_text(json.dumps(index | {"shards": index["shards"][:shards]}))
    return read_index(folder)


BAD = {
    "no messages": ({"messages": []}, "messages: must be a list of messages, got an empty list"),
    "no role": ({"messages": [{"content": "x"}]}, r"messages\[0\]: must be a message with a role and content"),
    "no content": ({"messages": [{"role": "user"}]}, r"messages\[0\]: must have content or tool_calls, got role"),
    "nobody answers": ({"messages": [data.user("x")]}, "messages: must have a turn of the assistant with a loss, got none"),
    "other keys": ({"text": "x", "title": "y"}, "must have the keys of messages, or prompt and completion, .*got text, title"),
    "another kind": (PREFERENCES[0], "must have the keys of messages"),
    "half text": ({"prompt": [data.user("x")], "completion": "y"}, "prompt and completion: must both be text or both lists"),
    "no object": (["x"], "must be one JSON object per line, got list"),
    "a complaint of the template": (
        {"messages": [{"role": "system", "content": "x"}, data.assistant("y")]},
        r"the chat template rejected it \(no system here\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("line", "reason"), BAD.values(), ids=BAD.keys())
def test_fails_with_file_and_line_of_what_is_no_example(tmp_path: Path, line: Any, reason: str) -> None:
    with pytest.raises(DataFailed, match=r"lines.jsonl:2: .*" + reason + ".*; fix the line or remove it"):
        data.tokenise(tmp_path, [CONVERSATIONS[0], line], Path("byte"), "--chat-template", PLAIN_CHAT)


def test_fails_for_preferences_that_do_not_differ(tmp_path: Path) -> None:
    line = {"prompt": "x", "chosen": "same", "rejected": "same"}
    with pytest.raises(DataFailed, match="lines.jsonl:1: chosen: must differ from rejected"):
        data.tokenise(tmp_path, [line], Path("byte"))


def test_fails_where_the_template_leaves_out_a_turn_that_others_follow(tmp_path: Path) -> None:
    template = "{% for m in messages %}{{ m.content if loop.last else m.content[:1] }}\n{% endfor %}"
    line = {"messages": [data.user("one"), data.assistant("two"), data.user("three"), data.assistant("four")]}
    with pytest.raises(DataFailed, match=r"lines.jsonl:1: messages\[1\]: must be rendered by the chat template, which leaves it out; set "):
        data.tokenise(tmp_path, [line], Path("byte"), "--chat-template", template)


def test_fails_where_the_template_leaves_out_an_answer_whose_text_stands_elsewhere(tmp_path: Path) -> None:
    template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content if m.role == 'user' }}<|end|>{% endfor %}"
    with pytest.raises(DataFailed, match=r"lines.jsonl:1: messages\[1\].content: must be rendered by the chat template"):
        data.tokenise(tmp_path, [{"messages": [data.user("Yes."), data.assistant("Yes.")]}], Path("byte"), "--chat-template", template)


def test_turns_without_any_end_are_trained_and_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template = (
        "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}{{ m.role }}: {{ m.content }}"
        "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look_up", "arguments": {}}}]}
    data.tokenise(tmp_path, [{"messages": [data.user("Sky?"), answer]} for answer in (data.assistant("Blue."), call)], Path("byte"),
                  "--chat-template", template)  # fmt: skip
    out = capsys.readouterr().out
    assert "note: 2 conversations have turns that end in no special token; a model that is trained on them may not stop" in out


@pytest.mark.parametrize("template", ["{% for m in messages %}", "/opt/nowhere.jinja"])
def test_fails_for_a_template_that_is_none(tmp_path: Path, template: str) -> None:
    with pytest.raises(InvalidRun, match="tokenizer.chatTemplate: must be a Jinja template"):
        data.tokenise(tmp_path, CONVERSATIONS, Path("byte"), "--chat-template", template)


def test_fails_without_any_template(tmp_path: Path) -> None:
    with pytest.raises(DataFailed, match="the tokenizer has none; set tokenizer.chatTemplate"):
        data.tokenise(tmp_path, CONVERSATIONS, Path("byte"))


def test_rows_hold_each_document_once_and_no_two_rows_fit_into_one() -> None:
    first = random.randrange(1 << 30)
    for seed in range(first, first + 50):
        chooser = random.Random(seed)
        row = chooser.randint(1, 200)
        lengths = [chooser.randint(1, row) for _ in range(chooser.randint(1, 300))]
        rows = packed(lengths, row)
        assert sorted(number for documents in rows for number in documents) == list(range(len(lengths))), f"seed {seed}"
        filled = sorted(sum(lengths[number] for number in documents) for documents in rows)
        assert filled[-1] <= row, f"seed {seed}"
        assert len(filled) == 1 or filled[0] + filled[1] > row, f"seed {seed}"


def test_a_row_is_its_documents_one_after_the_other(chats: Path) -> None:
    rows, documents = PackedRows(read_index(chats), 96), Documents(read_index(chats))
    found = []
    for number in range(rows.samples):
        tokens, targets, places = rows.sample(number)
        for place in places.unique():
            here = places == place
            if (targets[here] != IGNORED).any():
                assert targets[here][-1] == IGNORED, "the last token of a document has no target in its row"
                found.append((tokens[here].tolist(), targets[here].tolist()))
    expected = []
    for number, length in enumerate(documents.lengths):
        sample = torch.full((3, length), IGNORED)
        documents.fill(sample, 0, number, length)
        expected.append((sample[TOKENS].tolist(), sample[TARGETS].tolist()))
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("objective", ["sft", "dpo"])
def test_micro_batches_know_their_padding(tmp_path: Path, objective: str) -> None:
    seed = random.randrange(1 << 30)
    chooser = random.Random(seed)
    words = [chooser.randint(1, 60) for _ in range(24)]
    if objective == "sft":
        lines = [{"prompt": "p", "completion": "a" * count} for count in words]
    else:
        lines = [{"prompt": "p", "chosen": "a" * count, "rejected": "b" * (count + 1)} for count in words]
    shards = data.tokenise(tmp_path, lines, Path("byte"))
    job = job_of(objective, training={"sequenceLength": 70, "globalBatchSize": 1, "steps": 1})
    batches = Batches(shards, resolve_settings(job, job["arguments"], {}).training, 257, 0, 1)
    found = [batches.micro_batch(step, 0, torch.device("cpu")) for step in range(batches.samples)]
    assert sum(int(batch.tokens) for batch in found) == sum(Documents(read_index(shards)).lengths), f"seed {seed}"
    for batch in found:
        assert batch.padding_BL is not None
        assert batch.tokens_BL[batch.padding_BL].eq(0).all() and batch.targets_BL[batch.padding_BL].eq(IGNORED).all(), f"seed {seed}"


def test_rows_of_pairs_have_few_lengths_and_little_padding() -> None:
    """A kernel is compiled for each length."""
    found = {needed: row_length(needed) for needed in range(1, 32_769)}
    assert all(length % 128 == 0 and 0 <= length - needed < max(128, length / 8) for needed, length in found.items())
    assert len(set(found.values())) == 48 and set(found.values()) >= {2**power for power in range(7, 16)}


def test_what_is_longer_than_a_row_is_cut_and_counted(tmp_path: Path) -> None:
    lines = [{"prompt": "x" * 50, "completion": "y" * 100}, {"prompt": "x" * 90, "completion": "y"}, {"prompt": "a", "completion": "b"}]
    shards = data.tokenise(tmp_path, lines, Path("byte"))
    job = job_of("sft", training={"sequenceLength": 80, "globalBatchSize": 1, "steps": 1})
    batches = Batches(shards, resolve_settings(job, job["arguments"], {}).training, 257, 0, 1)
    assert batches.samples == 2
    (warning,) = batches.warnings("train")
    assert "2 documents are longer than sequenceLength 80 and were cut to it; 1 documents had no target left" in warning
    code, output = run_ranks(tmp_path / "run", 1, job, {"train": shards})
    assert code == 0 and "warning: channel train: 2 documents" in output


@pytest.mark.parametrize(("objective", "made"), [("pretrain", "sft"), ("dpo", "sft"), ("sft", "dpo")])
def test_fails_with_77_when_the_shards_are_for_another_objective(
    tmp_path: Path, chats: Path, preferences: Path, objective: str, made: str
) -> None:
    shards = {"sft": chats, "dpo": preferences}[made]
    code, output = run_ranks(tmp_path, 1, job_of(objective), {"train": shards})
    assert code == 77
    assert f"training.objective: must be {made} for shards made of" in output


@pytest.mark.drawn(1)
@pytest.mark.parametrize("objective", ["sft", "dpo"])
def test_a_run_that_is_resumed_has_the_losses_of_one_that_was_not(tmp_path: Path, chats: Path, preferences: Path, objective: str) -> None:
    """20 steps with evaluation; 8 steps and then, on another number of ranks, the other 12."""
    channels = {"train": {"sft": chats, "dpo": preferences}[objective]}
    channels["validation"] = channels["train"]
    words = ["--eval-channel", "validation", "--save-every-steps", "8"]

    def job(name: str, steps: int, resume_from: str = "") -> dict[str, Any]:
        checkpoints = direct_checkpoints(tmp_path / name, resumeFrom=resume_from)
        return job_of(objective, training={"steps": steps}, arguments=[*words, "--schedule", "constant"], checkpoints=checkpoints)

    code, output = run_ranks(tmp_path / "a", 1, job("whole", 20), channels)
    assert code == 0, output
    whole = [event["loss"] for event in events(output, "step")]
    assert whole[-1] < 0.9 * whole[0]
    evaluated = events(output, "eval")[-1]["loss"]
    first = losses_of(tmp_path / "b", 2, job("parts", 8), channels)
    code, output = run_ranks(tmp_path / "c", 1, job("parts", 20, str(tmp_path / "parts/step-8")), channels)
    assert code == 0, output
    assert events(output, "resume")[0]["step"] == 8
    rest = [event["loss"] for event in events(output, "step")]
    assert len(first) == 8 and len(rest) == 12
    assert first + rest == pytest.approx(whole, abs=2e-5)
    assert events(output, "eval")[-1]["loss"] == pytest.approx(evaluated, abs=2e-5)


LAYOUTS: dict[str, tuple[int, dict[str, Any]]] = {
    "tensor": (2, {"parameters": {"tensor_parallel_degree": 2}, "training": {"microBatchSize": 4}}),
    "fsdp1": (2, {"arguments": ["--backend", "fsdp1"]}),
    "pieces": (1, {"arguments": ["--loss-chunks", "3"]}),
    "micro": (1, {"training": {"microBatchSize": 4}}),
}


@pytest.fixture(scope="module")
def of_one_rank(tmp_path_factory: pytest.TempPathFactory, chats: Path) -> list[float]:
    return losses_of(tmp_path_factory.mktemp("one"), 1, job_of("sft"), {"train": chats})


@pytest.mark.drawn(1)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_take_the_same_steps(tmp_path: Path, chats: Path, of_one_rank: list[float], layout: str) -> None:
    """Tensor parallelism splits the words of the loss; FSDP1 is the other backend; pieces of the loss have other numbers of targets."""
    ranks, changes = LAYOUTS[layout]
    assert losses_of(tmp_path, ranks, job_of("sft", **changes), {"train": chats}) == pytest.approx(of_one_rank, abs=2e-5)
