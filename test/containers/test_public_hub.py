"""Situations of public reports about hubs (test/public/hub.md), with the real huggingface_hub against a hub on loopback."""

import errno
from pathlib import Path

import pytest
from loopback_hub import TOKEN, LoopbackHub, Repo
from test_fetch import WEIGHTS, copied, fetch, folder_of, hub, refused  # noqa: F401

from slipway_trainer.exits import InvalidRun
from slipway_trainer.fetch.repository import hub_errors, parse_source

MODEL = "models/org/model"


def test_a_mirror_without_xet_is_read_over_http(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    hub.repos[MODEL].xet = True
    copied(hub, tmp_path)


def test_a_proxy_that_drops_headers_is_named_once(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    hub.repos[MODEL].lost.add("X-Repo-Commit")
    assert "must be served with the headers of a hub, got Response" in refused(hub, tmp_path)


def test_a_mirror_without_the_size_of_large_files_is_read(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    hub.repos[MODEL].lost.add("X-Linked-Size")
    copied(hub, tmp_path)


def test_a_commit_of_a_rewritten_history_is_named(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    hub.repos[MODEL].stale = "b" * 40
    assert f"got {'b' * 40}, which the hub names for main" in refused(hub, tmp_path)


def test_a_full_disk_is_no_network_error() -> None:
    full = r"must fit on the disk .* raise compute\.volumeSizeGiB"
    with pytest.raises(InvalidRun, match=full), hub_errors(parse_source("hf:org/model")):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_truncated_file_is_not_stored(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    hub.repos[MODEL].lies["config.json"] = {"size": 1000}
    assert "must have 1000 bytes, got 23" in refused(hub, tmp_path)
    assert not (folder_of(hub, tmp_path) / "config.json").exists()


def test_a_file_that_an_earlier_start_left_broken_is_replaced(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    name = "model-00001-of-00002.safetensors"
    broken = folder_of(hub, tmp_path) / name
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"half")
    copied(hub, tmp_path)
    assert broken.read_bytes() == WEIGHTS


def test_both_formats_of_weights_are_not_copied_twice(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    copied(hub, tmp_path)
    assert not [
        path for path in (tmp_path / "to").rglob("*") if path.suffix in (".bin", ".pth", ".onnx") or path.name.startswith("consolidated")
    ]


def test_weights_in_one_file_under_mistrals_names_are_copied_without_others(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    hub.repos[MODEL] = Repo({"consolidated.safetensors": WEIGHTS, "params.json": b"{}"})
    copied(hub, tmp_path)
    assert (folder_of(hub, tmp_path) / "consolidated.safetensors").is_file()


def test_a_repository_of_gguf_files_is_refused(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    hub.repos[MODEL] = Repo({"model-Q4.gguf": WEIGHTS, "README.md": b""})
    assert "must have files that the trainer (*.safetensors) reads, got .gguf, .md" in refused(hub, tmp_path)


def test_a_token_without_access_is_told_from_none(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    hub.repos[MODEL].gated = True
    hub.cuts["model-00001-of-00002.safetensors"] = 1
    assert "accept its terms" in refused(hub, tmp_path, token="hf_without")
    copied(hub, tmp_path, token=TOKEN)


def test_a_busy_hub_is_waited_for(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    hub.statuses["/api/models/org/model/revision/main"] = [429]
    hub.statuses[f"/org/model/resolve/{hub.repos[MODEL].commit}/config.json"] = [429, 504]
    copied(hub, tmp_path)


def test_a_hub_that_is_down_does_not_matter_to_files_that_were_fetched(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    copied(hub, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "to").rglob("*.safetensors")}
    hub.close()
    assert fetch(hub, tmp_path, "--source", "hf:org/model", "--to", str(tmp_path / "to")).returncode == 75
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "to").rglob("*.safetensors")} == before


def test_offline_mode_is_named(hub: LoopbackHub, tmp_path: Path) -> None:  # noqa: F811
    done = fetch(hub, tmp_path, "--source", "hf:org/model", "--describe", HF_HUB_OFFLINE="1")
    assert (done.returncode, "got HF_HUB_OFFLINE; remove that variable" in done.stderr) == (77, True)
