"""Folders of weights as people report them (test/public/models.md): several saves or formats in one, and files that are not whole."""

import json
import os
import random
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from plain_loop import publish

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from test_weights import load, model_of  # noqa: E402

from slipway_trainer.exits import DataFailed, InvalidRun  # noqa: E402
from slipway_trainer.safetensors import INDEX, WHOLE, SafetensorsFile, open_folder, write_file  # noqa: E402

SEED = int(os.environ.get("SLIPWAY_TEST_SEED", random.randrange(1 << 30)))
Tensors = dict[str, torch.Tensor]
HEAD, EMBED, QUERY = "lm_head.weight", "model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight"


def put(path: Path, tensors: Tensors) -> None:
    write_file(path, list(tensors.items()), {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()})


def put_shards(folder: Path, tensors: Tensors, count: int) -> dict[str, str]:
    """Writes the tensors to `count` files; the file of each."""
    places = {name: f"model-{number % count + 1:05}-of-{count:05}.safetensors" for number, name in enumerate(tensors)}
    for file in set(places.values()):
        put(folder / file, {name: tensor for name, tensor in tensors.items() if places[name] == file})
    return places


def put_index(folder: Path, places: dict[str, str]) -> None:
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}), encoding="utf-8")


def in_shards(folder: Path, tensors: Tensors) -> dict[str, str]:
    """The weights in three files with their index, in the place of the whole."""
    (folder / WHOLE).unlink()
    places = put_shards(folder, tensors, 3)
    put_index(folder, places)
    return places


def older(tensors: Tensors) -> Tensors:
    return {name: tensor + 1 for name, tensor in tensors.items()}


def changed(folder: Path, tensors: Tensors, changes: Tensors) -> None:
    put(folder / WHOLE, tensors | changes)


def cut(folder: Path) -> None:
    (folder / WHOLE).write_bytes((folder / WHOLE).read_bytes()[:-1000])


def as_float8(folder: Path) -> None:
    data = (folder / WHOLE).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    head = data[8 : 8 + length].replace(b'"dtype":"F32"', b'"dtype":"F8_E4M3"')
    (folder / WHOLE).write_bytes(struct.pack("<Q", len(head)) + head + data[8 + length :])


def with_another_save(folder: Path, tensors: Tensors) -> None:
    in_shards(folder, tensors)
    put_shards(folder, older(tensors), 4)


def with_foreign_tensors(folder: Path, tensors: Tensors) -> None:
    """A shard holds older values of tensors that the index has in other files."""
    places = in_shards(folder, tensors)
    last = max(places.values())
    put(folder / last, older(tensors) | {name: tensor for name, tensor in tensors.items() if places[name] == last})


def without_a_shard(folder: Path, tensors: Tensors) -> None:
    (folder / min(in_shards(folder, tensors).values())).unlink()


def with_an_old_index(folder: Path, tensors: Tensors) -> None:
    put_shards(folder, tensors, 2)
    (folder / WHOLE).unlink()
    put_index(folder, {name: "model-00001-of-00030.safetensors" for name in tensors})


def both_without_an_index(folder: Path, tensors: Tensors) -> None:
    (folder / WHOLE).unlink()
    put_shards(folder, older(tensors), 2)
    put_shards(folder, tensors, 3)


#: What is read although other files are beside it.
READ: dict[str, Callable[[Path, Tensors], object]] = {
    "mflux-community/mflux#603": with_another_save,
    "vllm-project/vllm#54230": with_foreign_tensors,
    "vllm-project/vllm#40765": lambda folder, tensors: put(folder / "consolidated.safetensors", {"tok_embeddings.weight": tensors[HEAD]}),
    "huggingface/lerobot#826": lambda folder, tensors: put_shards(folder, older(tensors), 3),
}
#: What is refused, and the words of the refusal.
REFUSED: dict[str, tuple[Callable[[Path, Tensors], object], str]] = {
    "sgl-project/sglang#32279": (without_a_shard, f"files that {INDEX} names, got no model-00001-of-00003.safetensors; copy them again"),
    "Neph0s/CoSER#3": (
        with_an_old_index,
        f"files that {INDEX} names, got no model-00001-of-00030.safetensors; copy them again, or",
    ),
    "Blaizzy/mlx-vlm#1464": (
        lambda folder, tensors: put_index(folder, put_shards(folder, tensors, 2)),
        f"{WHOLE} or the files that {INDEX} names, got both",
    ),
    "a sibling: two saves and no index": (both_without_an_index, "must contain each tensor once"),
    "osaurus-ai/vmlx-swift#217": (lambda folder, tensors: cut(folder), "must be as long as its header says"),
    "a sibling: eight bits without a quantization_config": (lambda folder, tensors: as_float8(folder), "got F8_E4M3 for model."),
    "unslothai/unsloth#6978": (
        lambda folder, tensors: changed(folder, tensors, {QUERY + "_scale_inv": torch.ones(1)}),
        QUERY + "_scale_inv without a place",
    ),
    "QwenLM/Qwen3-VL-Embedding#89": (
        lambda folder, tensors: put(folder / WHOLE, {name: tensor for name, tensor in tensors.items() if name != HEAD}),
        f"1 differences: no {HEAD}",
    ),
}
TIED = {"tiedEmbeddings": True}


@pytest.mark.parametrize("change", READ.values(), ids=READ)
def test_files_of_another_save_or_format_are_not_read(tmp_path: Path, change: Callable[[Path, Tensors], object]) -> None:
    model = model_of({})
    publish(model, tmp_path)
    change(tmp_path, {name: file.tensor(name) for name, file in open_folder(tmp_path).items()})
    again = model_of({})
    for parameter in again.parameters():
        torch.nn.init.zeros_(parameter)
    load(again, tmp_path)
    assert all(torch.equal(*pair) for pair in zip(model.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize(("change", "reason"), REFUSED.values(), ids=REFUSED)
def test_weights_that_are_not_whole_are_refused_by_name(tmp_path: Path, change: Callable[[Path, Tensors], object], reason: str) -> None:
    publish(model_of({}), tmp_path)
    change(tmp_path, {name: file.tensor(name) for name, file in open_folder(tmp_path).items()})
    with pytest.raises((DataFailed, InvalidRun), match=re.escape(reason)):
        load(model_of({}), tmp_path)


def test_a_head_that_repeats_tied_embeddings_is_read_and_another_one_refused(tmp_path: Path) -> None:
    # hiyouga/LlamaFactory#10560 and huggingface/transformers#46456
    publish(model_of(TIED), tmp_path)
    tensors = {name: file.tensor(name) for name, file in open_folder(tmp_path).items()}
    changed(tmp_path, tensors, {HEAD: tensors[EMBED]})
    load(model_of(TIED), tmp_path)
    changed(tmp_path, tensors, {HEAD: tensors[EMBED] + 1})
    with pytest.raises(InvalidRun, match=f"{HEAD} without a place"):
        load(model_of(TIED), tmp_path)


def test_law_a_folder_is_read_as_its_index_says_whatever_lies_beside_the_files(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    for round_number in range(12):
        folder = tmp_path / str(round_number)
        folder.mkdir()
        tensors = {f"t{number}": torch.rand(rng.randint(1, 3), 2) for number in range(rng.randint(1, 7))}
        for _ in range(rng.randint(0, 3)):
            kept = rng.sample(sorted(tensors), rng.randint(1, len(tensors)))
            put_shards(folder, older({name: tensors[name] for name in kept}), rng.randint(1, 5))
        put_index(folder, put_shards(folder, tensors, rng.randint(1, 5)))
        found = {name: file.tensor(name) for name, file in open_folder(folder).items()}
        assert found.keys() == tensors.keys(), SEED
        assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items()), SEED


def test_law_a_changed_file_is_refused_or_keeps_the_shapes_of_its_header(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    put(tmp_path / WHOLE, {"a": torch.rand(3, 5), "b": torch.rand(4)})
    whole = (tmp_path / WHOLE).read_bytes()
    for _ in range(300):
        if rng.random() < 0.5:
            data = whole[: rng.randrange(len(whole))]
        else:
            place = rng.randrange(len(whole))
            data = whole[:place] + bytes([rng.randrange(256)]) + whole[place + 1 :]
        (tmp_path / WHOLE).write_bytes(data)
        try:
            file = SafetensorsFile(tmp_path / WHOLE)
        except DataFailed:
            continue
        assert all(tuple(file.tensor(name).shape) == file.shape(name) for name in file.names), (SEED, data)
