"""Secrets of the run file: signed calls to the two services, variables of the script, and no trace of a value anywhere else."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from fake_world import FakeWorld, job_json
from slipway_driver import aws_call, log
from slipway_driver.aws_call import read_secrets
from slipway_driver.exit_codes import DriverError

pytestmark = pytest.mark.jobs

#: Answers that break off: after a part of the body, and before the status.
CUT: dict[str, object] = {"cut": True}
NO_STATUS = 0
TOKEN = "drawn-by-lot-4711"
KEY = 'line one of a key\nline two with "quotes" & more'
SECRET_ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:slipway/hub-AbCdEf"
PARAMETER_ARN = "arn:aws:ssm:us-west-2:111122223333:parameter/slipway/key"


class FakeServices:
    """GetSecretValue and GetParameter, for what is signed for them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, object]]] = []
        self.secrets = {SECRET_ARN: TOKEN, "slipway/hub": TOKEN, "slipway/short": "1234"}
        #: What is answered first, whatever the call.
        self.troubles: list[tuple[int, dict[str, object]]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.environ = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_ACCESS_KEY_ID": "AKIDTEST",
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_REGION": "us-west-2",
        }
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, target: str, body: dict[str, object], authorization: str) -> tuple[int, dict[str, object]]:
        self.calls.append((target, body))
        if self.troubles:
            return self.troubles.pop(0)
        service = "secretsmanager" if target.startswith("secretsmanager") else "ssm"
        if f"/us-west-2/{service}/aws4_request" not in authorization:
            return 400, {"__type": "InvalidSignatureException"}
        if target == "AmazonSSM.GetParameter" and body == {"Name": "/slipway/key", "WithDecryption": True}:
            return 200, {"Parameter": {"Value": KEY}}
        value = self.secrets.get(str(body.get("SecretId")))
        if target == "secretsmanager.GetSecretValue" and value:
            return 200, {"SecretString": value}
        return 400, {"__type": "com.amazonaws#AccessDeniedException", "Message": f"not authorised: {body}"}

    def _handler(outer) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, said = outer.answer(self.headers["X-Amz-Target"], body, self.headers.get("Authorization", ""))
                if status == NO_STATUS:
                    self.wfile.write(b"no status line\r\n\r\n")
                    return
                self.send_response(status)
                if said == CUT:
                    self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(json.dumps(said).encode())

            def log_message(self, *_: object) -> None:
                """Quiet."""

        return Handler


@pytest.fixture
def services() -> Iterator[FakeServices]:
    made = FakeServices()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_forms", [])


def read(references: dict[str, str], services: FakeServices) -> dict[str, str]:
    return read_secrets(references, services.environ)


@pytest.mark.parametrize(("reference", "value"), [(SECRET_ARN, TOKEN), ("slipway/hub", TOKEN), (PARAMETER_ARN, KEY), ("/slipway/key", KEY)])
def test_a_secret_and_a_parameter_by_arn_and_by_name(reference: str, value: str, services: FakeServices) -> None:
    assert read({"ONE": reference}, services) == {"ONE": value}
    assert len(services.calls) == 1


def test_every_form_of_a_value_is_masked(services: FakeServices) -> None:
    read({"KEY": "/slipway/key"}, services)
    for form in (KEY, json.dumps(KEY), quote(KEY, safe=""), 'line two with "quotes" & more'):
        assert "quotes" not in log.without_hidden(f"before {form} after"), form
    assert log.without_hidden("line one is fine") == "line one is fine"


def test_fails_with_77_for_all_that_cannot_be_read_and_shows_no_value(services: FakeServices) -> None:
    with pytest.raises(DriverError) as found:
        read({"A": "slipway/hub", "B": "slipway/none", "C": "slipway/short"}, services)
    assert found.value.code == 77
    assert found.value.reason == (
        "secrets.B: slipway/none must be readable with the role of the job (AccessDeniedException); "
        "secrets.C: slipway/short must have at least 8 characters, so that it can be masked"
    )


@pytest.mark.parametrize("trouble", [(400, {"__type": "ThrottlingException"}), (429, {}), (503, {})])
def test_a_service_that_refuses_for_its_rate_is_called_again(
    trouble: tuple[int, dict[str, object]], services: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All hosts of a job start at the same time, and the services accept few calls a second for the whole account."""
    waits: list[float] = []
    monkeypatch.setattr(aws_call, "sleep", waits.append)
    services.troubles = [trouble, trouble]
    assert read({"ONE": "slipway/hub", "TWO": "/slipway/key"}, services) == {"ONE": TOKEN, "TWO": KEY}
    assert len(services.calls) == 4 and 0 < waits[0] < waits[1] * 2


def test_fails_with_77_when_the_service_never_accepts_the_rate(services: FakeServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_call, "sleep", lambda _seconds: None)
    services.troubles = [(400, {"__type": "ThrottlingException"})] * 100
    with pytest.raises(DriverError, match=r"\(ThrottlingException\)") as found:
        read({"ONE": "slipway/hub"}, services)
    assert (found.value.code, len(services.calls)) == (77, aws_call.ATTEMPTS)


@pytest.mark.parametrize("trouble", [(200, CUT), (503, CUT), (400, CUT), (NO_STATUS, CUT)])
def test_a_response_that_breaks_off_is_asked_for_again(
    trouble: tuple[int, dict[str, object]], services: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws_call, "sleep", lambda _seconds: None)
    services.troubles = [trouble, trouble]
    assert read({"ONE": "slipway/hub"}, services) == {"ONE": TOKEN}
    services.troubles = [trouble] * 100
    with pytest.raises(DriverError, match="secrets.ONE: slipway/hub must be readable") as found:
        read({"ONE": "slipway/hub"}, services)
    assert found.value.code == 77


def test_fails_at_once_when_a_call_is_denied(services: FakeServices) -> None:
    with pytest.raises(DriverError, match=r"\(AccessDeniedException\)"):
        read({"ONE": "slipway/none"}, services)
    assert len(services.calls) == 1


SCRIPT = """import os, sys
print("the token is", os.environ["HF_TOKEN"], flush=True)
print("hello", len(os.environ["HF_TOKEN"]), flush=True)
print("warning: " + os.environ["HF_TOKEN"], file=sys.stderr, flush=True)
raise RuntimeError("refused for " + os.environ["HF_TOKEN"])
"""


def test_a_job_gets_its_secret_and_no_line_or_file_shows_it(tmp_path: Path, services: FakeServices) -> None:
    world = FakeWorld(tmp_path / "world", 1, job_json(secrets={"HF_TOKEN": "slipway/hub"}), {"train.py": SCRIPT})
    world.start(services.environ)
    assert world.wait() != [0]
    log = world.log("algo-1")
    assert "secrets: HF_TOKEN" in log and f"hello {len(TOKEN)}" in log and "the token is ***" in log
    assert "refused for ***" in log
    files = [path for path in (tmp_path / "world").rglob("*") if path.is_file()]
    assert any(path.name == "failure" for path in files)
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []


def test_a_job_whose_secret_is_refused_ends_before_its_code(tmp_path: Path, services: FakeServices) -> None:
    world = FakeWorld(tmp_path / "world", 1, job_json(secrets={"HF_TOKEN": "slipway/none"}), {"train.py": "print('ran')\n"})
    world.start(services.environ)
    assert world.wait() == [77]
    assert "secrets.HF_TOKEN: slipway/none must be readable" in world.log("algo-1") and "ran" not in world.log("algo-1").split()
