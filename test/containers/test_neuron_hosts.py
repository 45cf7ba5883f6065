"""A whole job on two ml.trn2.48xlarge: one process for each of the 64 NeuronCores that the runtime shows on a host."""

import json
import sys
from pathlib import Path

import pytest

from fake_world import FakeWorld, job_json

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

#: What torch-neuronx reads of its surroundings to choose a core and to find the others.
SCRIPT = """
import json, os, pathlib
names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR SM_NUM_NEURONS TORCH_NEURONX_NEFF_CACHE_DIR".split()
seen = {name: os.environ[name] for name in names}
visible = sorted(name for name in os.environ if name.startswith(("NEURON_RT_VISIBLE", "NEURON_RT_NUM", "NEURON_RT_ROOT", "CUDA_")))
pathlib.Path(os.environ["SEEN"], seen["RANK"]).write_text(json.dumps(seen | {"visible": visible}))
"""


def test_each_of_128_ranks_has_a_core_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "seen"
    folder.mkdir()
    variables = {"SEEN": str(folder), "TORCH_NEURONX_NEFF_CACHE_DIR": "/opt/ml/checkpoints/neff"}
    world = FakeWorld(tmp_path / "world", 2, job_json(launcher="torchrun", processesPerHost=64, env=variables), {"train.py": SCRIPT})
    for host in world.hosts:
        place = world.base(host) / "input/config/resourceconfig.json"
        place.write_text(place.read_text().replace("ml.m5.large", "ml.trn2.48xlarge"))
    world.start({"PYTHONPATH": ":".join(entry for entry in sys.path if "site-packages" in entry)})
    assert world.wait() == [0, 0], "\n".join(world.log(host)[-2000:] for host in world.hosts)
    ranks = [json.loads((folder / str(rank)).read_text()) for rank in range(128)]
    assert [(int(rank["RANK"]), int(rank["GROUP_RANK"]), int(rank["LOCAL_RANK"])) for rank in ranks] == [
        (number, number // 64, number % 64) for number in range(128)
    ]
    assert {(rank["WORLD_SIZE"], rank["LOCAL_WORLD_SIZE"], rank["SM_NUM_NEURONS"]) for rank in ranks} == {("128", "64", "64")}
    assert len({rank["MASTER_ADDR"] for rank in ranks}) == 1
    assert {rank["TORCH_NEURONX_NEFF_CACHE_DIR"] for rank in ranks} == {"/opt/ml/checkpoints/neff"}
    assert all(rank["visible"] == [] for rank in ranks), "which core is whose is for torch-neuronx to say, by LOCAL_RANK"
    assert [world.events(host, "inventory")[0]["neurons"] for host in world.hosts] == [64, 64]
