"""What the driver asks a host before training, on a real one."""

import os
import sys
import threading
from pathlib import Path

from case import Case, Found
from machine import Machine, lacks_gpu
from measurement import python_path


def health(_machine: Machine, folder: Path) -> Found:
    from slipway_driver.gpus import answer_of
    from slipway_driver.health_findings import Place, measured_findings, quick_findings
    from slipway_driver.health_gate import quick_answers
    from slipway_driver.health_measure import Setup, measure
    from slipway_driver.inventory import inventory

    place = Place("algo-1", "ml.p5.4xlarge", 0, False)
    replies = quick_answers(answer_of)
    folder.mkdir(exist_ok=True)
    result = measure(Setup(sys.executable, os.environ | {"PYTHONPATH": python_path()}, folder, 1), threading.Event())
    measured = result.facts
    found = [*quick_findings(place, replies), *result.findings, *measured_findings(place.instance_type, measured, [])]
    facts = inventory(0)
    kind = facts.get("gpu", "no name")
    silent = [name for name, answer in replies.items() if not answer.text]
    figure = f"{kind}, driver {facts.get('driver')}, CUDA of torch {facts.get('cuda')}; matmul {measured.get('tflops')} TFLOP/s"
    figure += f"; no answer: {', '.join(silent) or 'none'}; findings: {'; '.join(finding.reason for finding in found) or 'none'}"
    return Found(figure, bool(measured) and not any(finding.refuses for finding in found))


CASES = (Case("health check of this host", "a healthy host is not refused, and is measured", lacks_gpu, health),)
