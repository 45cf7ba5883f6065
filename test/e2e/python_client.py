"""What a researcher does with the Python client, against a deployed environment; prints what it saw as JSON.

    python_client.py FOLDER RUN_FILE    FOLDER holds code and run file; the notebook runs there too
"""

import contextlib
import io
import json
import os
import pathlib
import sys
import typing

import slipway

ROOT = pathlib.Path(__file__).resolve().parents[2]
folder, run_file = pathlib.Path(sys.argv[1]), sys.argv[2]
env = slipway.Environment("e2e/default", region="us-west-2")


def refusal(call: typing.Callable[[], object]) -> list[str]:
    try:
        call()
    except slipway.Refused as refused:
        return sorted({issue["rule"] for issue in refused.issues if issue["level"] == "error"})
    return []


def notebook() -> dict[str, typing.Any]:
    """Executes the cells of the example in order, as a kernel would; answers what they leave."""
    cells = json.loads((ROOT / "clients/python/examples/notebook.ipynb").read_text())["cells"]
    names: dict[str, typing.Any] = {}
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for cell in cells:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)  # noqa: S102
    return names


run = env.launch(run_file, client_request_id="python-1")
again = env.launch(run_file, client_request_id="python-1")
ended = run.wait(progress=False, poll=1)
cells = notebook()
print(
    json.dumps(
        {
            "runId": run.id,
            "again": again.id,
            "ended": ended,
            "status": run.status(),
            "issues": env.validate(run_file, set={"compute.instanceType": "ml.p9.48xlarge"}),
            "refused": refusal(lambda: env.launch(run_file, set={"compute.instanceType": "ml.p9.48xlarge"})),
            "steps": [step["loss"] for step in run._steps()],
            "log": [line["message"] for line in run.logs()],
            "timeline": [line["what"] for line in run.timeline()],
            "checkpoints": run.checkpoints(),
            "runs": [each["runId"] for each in env.runs()],
            "notebook": {
                "state": cells["status"]["state"],
                "losses": [step["loss"] for step in cells["run"]._steps()],
                "plan": cells["plan"]["fits"],
                "html": cells["run"]._repr_html_(),
                "report": (folder / "notebook-report.html").stat().st_size,
            },
        }
    )
)
