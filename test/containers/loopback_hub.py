"""A hub on the loopback interface, with the protocol that `huggingface_hub` speaks: repositories, trees in pages, files with ETag and
X-Repo-Commit, large files behind a redirect with X-Linked-Size, ranges, gated and missing repositories; and its faults.

`python test/containers/loopback_hub.py FOLDER` serves FOLDER/ORG/NAME and FOLDER/datasets/ORG/NAME until its standard input ends, and
prints its address.
"""

import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_reader"
#: Files in one page of a tree.
PAGE = 3


class Repo:
    """A repository: files by path. Files from `large` bytes on are LFS files."""

    def __init__(self, files: dict[str, bytes], gated: bool = False, card: dict[str, Any] | None = None, large: int = 1000) -> None:
        self.files, self.gated, self.card, self.large = files, gated, card or {}, large
        self.refs = {"main": "", "v1.0": "", "feature/new": ""}
        #: What the tree says in place of the truth, by path.
        self.lies: dict[str, dict[str, Any]] = {}
        #: Headers that a mirror or proxy loses.
        self.lost: set[str] = set()
        #: Whether large files are offered by the Xet protocol, which this server does not have.
        self.xet = False
        #: The commit that the hub names, where it has not noticed a rewritten history.
        self.stale: str | None = None

    @property
    def commit(self) -> str:
        return hashlib.sha1(repr(sorted((path, hashlib.sha1(data).hexdigest()) for path, data in self.files.items())).encode()).hexdigest()

    def has(self, revision: str) -> bool:
        return revision in self.refs or revision == self.commit

    def entry(self, path: str) -> dict[str, Any]:
        data = self.files[path]
        found = {"type": "file", "path": path, "size": len(data), "oid": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()}
        if len(data) >= self.large:
            found |= {"lfs": {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}, "oid": "0" * 40}
        return found | self.lies.get(path, {})


class LoopbackHub:
    """A server with repositories by `models/ORG/NAME` and `datasets/ORG/NAME`."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        #: Every request: method, path, and the Range that it asked for.
        self.requests: list[tuple[str, str, str]] = []
        #: Number of next downloads of a path whose connection ends in the middle.
        self.cuts: dict[str, int] = {}
        #: Status codes of the next requests for a path.
        self.statuses: dict[str, list[int]] = {}
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        #: Large files are on another host, as those of the hub.
        self.cdn = f"http://localhost:{self.server.server_address[1]}"
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def downloads(self, ending: str) -> int:
        """Number of GET requests for the content of files whose path ends so."""
        return sum(
            method == "GET" and ("/resolve/" in path or path.startswith("/cdn/")) and path.endswith(ending)
            for method, path, _ in self.requests
        )


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def _serve(self) -> None:
        path = unquote(urlsplit(self.path).path)
        with self.hub.lock:
            self.hub.requests.append((self.command, path, self.headers.get("range", "")))
            due = self.hub.statuses.get(path)
            status = due.pop(0) if due else None
        if status is not None:
            return self._answer(status, b"busy", {"Retry-After": "0"})
        parts = path.lstrip("/").split("/")
        if parts[0] == "api":
            return self._api(parts[1:])
        if parts[0] == "cdn":
            return self._cdn("/".join(parts[1:4]), "/".join(parts[4:]))
        kind = "datasets" if parts[0] == "datasets" else "models"
        return self._resolve(kind, parts[1:] if kind == "datasets" else parts)

    def _find(self, name: str, revision: str) -> Repo | None:
        repo = self.hub.repos.get(name)
        if repo is None:
            # Without a token the hub does not say whether a private repository exists.
            self._answer(401, b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        elif not repo.has(revision):
            self._answer(404, b"{}", {"X-Error-Code": "RevisionNotFound", "X-Error-Message": f"Invalid rev id: {revision}"})
            repo = None
        return repo

    def _api(self, parts: list[str]) -> None:
        name, what, revision = "/".join(parts[:3]), parts[3], "/".join(parts[4:])
        if what == "xet-read-token":
            return self._answer(404, b"{}", {})
        repo = self._find(name, revision)
        if repo is None:
            return
        if what == "revision":
            facts = {
                "id": "/".join(parts[1:3]),
                "sha": repo.stale or repo.commit,
                "gated": "manual" if repo.gated else False,
                "private": False,
            }
            return self._json(facts | {"cardData": repo.card, "tags": [], "downloads": 0, "likes": 0, "siblings": []})
        first = int(parse_qs(urlsplit(self.path).query).get("cursor", ["0"])[0])
        paths = list(repo.files)[first : first + PAGE]
        more = first + PAGE < len(repo.files)
        link = f'<{self.hub.url}/api/{name}/tree/{revision}?recursive=true&cursor={first + PAGE}>; rel="next"'
        self._json([repo.entry(path) for path in paths], {"Link": link} if more else {})

    def _resolve(self, kind: str, parts: list[str]) -> None:
        name, path = f"{kind}/{parts[0]}/{parts[1]}", "/".join(parts[4:])
        repo = self._find(name, parts[3])
        if repo is None:
            return
        if repo.gated and self.headers.get("authorization") != f"Bearer {TOKEN}":
            return self._answer(403 if self.headers.get("authorization") else 401, b"{}", {"X-Error-Code": "GatedRepo"})
        if path not in repo.files:
            return self._answer(404, b"{}", {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"})
        entry, data = repo.entry(path), repo.files[path]
        about = {"X-Repo-Commit": repo.commit, "Accept-Ranges": "bytes"}
        if repo.xet:
            auth = f'<{self.hub.url}/api/{name}/xet-read-token/{repo.commit}>; rel="xet-auth"'
            about |= {"X-Xet-Hash": "a" * 64, "Link": auth}
        about = {key: value for key, value in about.items() if key not in repo.lost}
        if "lfs" not in entry:
            return self._answer(200, data, about | {"ETag": f'"{entry["oid"]}"'})
        large = {
            "X-Linked-Size": str(len(data)),
            "X-Linked-Etag": f'"{entry["lfs"]["oid"]}"',
            "Location": f"{self.hub.cdn}/cdn/{name}/{path}",
        }
        self._answer(302, b"", about | {key: value for key, value in large.items() if key not in repo.lost})

    def _cdn(self, name: str, path: str) -> None:
        data = self.hub.repos[name].files[path]
        first = int((self.headers.get("range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
        headers = {"ETag": '"cdn"', "Accept-Ranges": "bytes"}
        if first:
            headers["Content-Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
        with self.hub.lock:
            cut = self.hub.cuts.get(path, 0)
            self.hub.cuts[path] = cut - 1
        if cut > 0 and self.command == "GET":
            self._head(206 if first else 200, headers, len(data) - first)
            self.wfile.write(data[first : first + (len(data) - first) // 2])
            self.close_connection = True
            return
        self._answer(206 if first else 200, data[first:], headers)

    def _json(self, value: Any, headers: dict[str, str] | None = None) -> None:
        self._answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"} | (headers or {}))

    def _head(self, status: int, headers: dict[str, str], length: int) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self._head(status, headers, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)


def from_folder(hub: LoopbackHub, root: Path) -> None:
    """Adds a repository for each folder ORG/NAME and datasets/ORG/NAME."""
    for readme in sorted(root.rglob("README.md")):
        folder = readme.parent
        name = folder.relative_to(root).as_posix()
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
        hub.repos[name if name.startswith("datasets/") else f"models/{name}"] = Repo(files, card={"license": "apache-2.0"})


if __name__ == "__main__":
    served = LoopbackHub()
    from_folder(served, Path(sys.argv[1]))
    print(served.url, flush=True)
    sys.stdin.read()
    served.close()
