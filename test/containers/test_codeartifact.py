"""Requirements from CodeArtifact: signed calls for token and endpoint, then pip against the index that the endpoint names."""

import base64
import io
import json
import os
import threading
import urllib.parse
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

import pytest

from fake_world import FakeWorld, job_json
from slipway_driver import code
from slipway_driver.code import index_url, install_requirements
from slipway_driver.exit_codes import DriverError

pytestmark = pytest.mark.jobs

ARN = "arn:aws:codeartifact:us-west-2:111122223333:repository/tools/python"
TOKEN = "token-of-the-test"
WHEEL = "tiny_slipway_fixture-1.0-py3-none-any.whl"


def wheel() -> bytes:
    """A wheel of one module, made by hand: nothing is fetched."""
    written = io.BytesIO()
    info = "tiny_slipway_fixture-1.0.dist-info"
    with zipfile.ZipFile(written, "w") as opened:
        opened.writestr("tiny_slipway_fixture.py", "VALUE = 42\n")
        opened.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-slipway-fixture\nVersion: 1.0\n")
        opened.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        opened.writestr(f"{info}/RECORD", "")
    return written.getvalue()


class FakeCodeArtifact:
    """The service's two calls and a package index that wants the token."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, dict[str, list[str]], str]] = []
        #: Ends of paths of the index, and with which statuses they fail first.
        self.troubles: dict[str, list[int]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, query: dict[str, list[str]], authorization: str) -> tuple[int, str, bytes]:
        self.calls.append((method, path, query, authorization))
        if path.startswith("/v1/"):
            if "/us-west-2/codeartifact/aws4_request" not in authorization:
                return 403, "application/json", b'{"message":"not signed for this service"}'
            token, endpoint = {"authorizationToken": TOKEN}, {"repositoryEndpoint": self.url + "/pypi/python/"}
            return 200, "application/json", json.dumps(token if path == "/v1/authorization-token" else endpoint).encode()
        if authorization != "Basic " + base64.b64encode(f"aws:{TOKEN}".encode()).decode():
            return 401, "text/plain", b"a token is needed"
        for end, statuses in self.troubles.items():
            if path.endswith(end) and statuses:
                return statuses.pop(0), "text/plain", b"not now"
        if path == "/pypi/python/simple/tiny-slipway-fixture/":
            return 200, "text/html", f'<!DOCTYPE html><html><body><a href="/pypi/python/files/{WHEEL}">{WHEEL}</a></body></html>'.encode()
        return (200, "application/zip", wheel()) if path.endswith(WHEEL) else (404, "text/plain", b"no such package")

    def _handler(outer) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def _do(self) -> None:
                found = urllib.parse.urlsplit(self.path)
                query = urllib.parse.parse_qs(found.query)
                status, kind, body = outer.answer(self.command, found.path, query, self.headers.get("Authorization", ""))
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                if status == 401:
                    self.send_header("WWW-Authenticate", 'Basic realm="index"')
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = _do

            def log_message(self, *_: object) -> None:
                """Quiet."""

        return Handler


@pytest.fixture
def service() -> Iterator[FakeCodeArtifact]:
    made = FakeCodeArtifact()
    yield made
    made.close()


def environ(service: FakeCodeArtifact) -> dict[str, str]:
    keys = {"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-west-2"}
    return {"AWS_ENDPOINT_URL_CODEARTIFACT": service.url, "CA_REPOSITORY_ARN": ARN, **keys}


def test_a_job_installs_from_the_repository_with_the_role_s_token_and_never_shows_it(tmp_path: Path, service: FakeCodeArtifact) -> None:
    script = "import tiny_slipway_fixture as t\nprint('value', t.VALUE)\n"
    files = {"train.py": script, "requirements.txt": "tiny-slipway-fixture==1.0\n"}
    world = FakeWorld(tmp_path / "world", 1, job_json(requirements="requirements.txt"), files)
    site = str(tmp_path / "site")
    world.start(environ(service) | {"PIP_TARGET": site, "PYTHONPATH": site, "PIP_NO_CACHE_DIR": "1"})
    assert world.wait() == [0], world.log("algo-1")
    log = world.log("algo-1")
    assert "installing requirements.txt from CodeArtifact" in log and "value 42" in log
    assert TOKEN not in log
    asked = [(method, path, query) for method, path, query, _ in service.calls if path.startswith("/v1/")]
    names = {"domain": ["tools"], "domain-owner": ["111122223333"]}
    assert asked == [
        ("POST", "/v1/authorization-token", names),
        ("GET", "/v1/repository/endpoint", {**names, "repository": ["python"], "format": ["pypi"]}),
    ]


def test_fails_with_77_when_the_service_refuses(tmp_path: Path, service: FakeCodeArtifact) -> None:
    with pytest.raises(DriverError, match="CA_REPOSITORY_ARN: the request to .*repository/tools/python failed") as found:
        index_url(ARN.replace("us-west-2", "eu-west-1"), environ(service))
    assert found.value.code == 77


@pytest.mark.parametrize("arn", ["tools/python", "arn:aws:s3:::bucket", ARN.rsplit("/", 1)[0]])
def test_fails_for_what_is_no_repository(arn: str, service: FakeCodeArtifact) -> None:
    with pytest.raises(DriverError, match="must be the ARN of a CodeArtifact repository"):
        index_url(arn, environ(service))
    assert service.calls == []


def install(tmp_path: Path, service: FakeCodeArtifact, requirement: str = "tiny-slipway-fixture==1.0") -> list[str]:
    """Installs it with pip; returns what the driver logs."""
    (tmp_path / "requirements.txt").write_text(requirement + "\n")
    lines: list[str] = []
    variables = {**os.environ, **environ(service), "PIP_TARGET": str(tmp_path / "site"), "PIP_NO_CACHE_DIR": "1"}
    with mock.patch("slipway_driver.code.log", lines.append):
        install_requirements(tmp_path, "requirements.txt", tmp_path / "none", variables)
    return lines


# pypa/pip#11006 (pip never repeats 429), RobotLocomotion/pytorch-dense-correspondence#42 (503)
@pytest.mark.parametrize(
    ("end", "statuses"),
    [("/simple/tiny-slipway-fixture/", [429, 429]), (WHEEL, [429]), (WHEEL, [502]), (WHEEL, [504, 429])],
)
def test_pip_is_started_again_when_the_index_throttles_or_breaks_off(
    end: str, statuses: list[int], tmp_path: Path, service: FakeCodeArtifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "sleep", lambda _seconds: None)
    service.troubles[end] = list(statuses)
    lines = install(tmp_path, service)
    assert (tmp_path / "site" / "tiny_slipway_fixture.py").is_file()
    assert len([line for line in lines if "pip starts again" in line]) == len(statuses)
    assert TOKEN not in "\n".join(lines)


def test_fails_with_77_when_the_index_throttles_every_time(
    tmp_path: Path, service: FakeCodeArtifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "sleep", lambda _seconds: None)
    service.troubles[WHEEL] = [429] * 100
    with pytest.raises(DriverError, match="could not be installed from CodeArtifact: .*429") as found:
        install(tmp_path, service)
    assert found.value.code == 77
    assert len([call for call in service.calls if call[1].endswith(WHEEL)]) == code.INSTALL_TRIES


def test_fails_at_once_for_a_package_that_is_not_there(tmp_path: Path, service: FakeCodeArtifact) -> None:
    with pytest.raises(DriverError, match="No matching distribution found for no-such-package"):
        install(tmp_path, service, "no-such-package==1.0")
    assert len([call for call in service.calls if "no-such-package" in call[1]]) == 1
