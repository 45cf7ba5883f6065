"""Planned faults on calls to MiniStack's services: a slow S3, a throttled table, a disabled key.

Faults on our own services are implemented in TypeScript (api-server.ts).
"""

import asyncio
import json
import re
import time
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

from ministack.services import sts

SCOPE = re.compile(r"Credential=([^/,\s&]+)/\d{8}/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request")


class AwsFaults:
    """Faults on calls to the embedded AWS, each with its hits."""

    def __init__(self):
        self.entries = []

    def add(self, request):
        entry = {"id": request["id"], "fault": request["fault"], "armed": True, "hits": []}
        self.entries.append(entry)
        return entry

    def list(self, _request):
        return {"faults": self.entries}

    def remove(self, request):
        before = len(self.entries)
        self.entries = [entry for entry in self.entries if request.get("id") not in (None, entry["id"])]
        return {"removed": before - len(self.entries)}

    def strike(self, call):
        for entry in self.entries:
            if entry["armed"] and concerns(entry["fault"], call):
                target = {key: call[key] for key in ("region", "service", "operation", "method", "path", "role")}
                entry["hits"].append({"at": int(time.time() * 1000), "target": target})
                times = entry["fault"].get("times")
                entry["armed"] = times is None or len(entry["hits"]) < times
                return entry["fault"]
        return None

    async def answer(self, scope, receive, send, inner):
        """Passes a call on to MiniStack, unless a fault applies to it."""
        if not any(entry["armed"] for entry in self.entries):
            return await inner(scope, receive, send)
        body = await read_body(receive)
        call = describe(scope, body)
        fault = call and self.strike(call)
        if fault:
            await asyncio.sleep(fault.get("seconds", 0))
        if not fault or fault.get("code") is None:
            return await inner(scope, replay(body, receive), send)
        if fault.get("committed"):
            await inner(scope, replay(body, receive), swallow)
        return await refuse(call, fault, send)


def concerns(fault, call):
    if fault.get("region") not in (None, call["region"]) or fault["service"] != call["service"]:
        return False
    return all(fault.get(key) is None or re.search(fault[key], call[key] or "") for key in ("operation", "method", "path", "role"))


def describe(scope, body):
    """Region, service, operation, method, path and role of a signed call; None when it is not signed."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    query = scope.get("query_string", b"").decode("latin-1")
    found = SCOPE.search(headers.get("authorization", "")) or SCOPE.search(unquote(query).replace("X-Amz-Credential", "Credential"))
    if not found:
        return None
    key, region, service = found.groups()
    form = parse_qs(body.decode("utf-8", "replace")) if "x-www-form-urlencoded" in headers.get("content-type", "") else {}
    operation = headers.get("x-amz-target", "").rsplit(".", 1)[-1] or (form.get("Action") or [""])[0]
    arn = str((sts._sessions.get(key) or {}).get("Arn", ""))
    role = arn.split(":assumed-role/")[1].split("/")[0] if ":assumed-role/" in arn else None
    return {
        "region": region,
        "service": service,
        "operation": operation,
        "method": scope["method"],
        "path": scope["path"],
        "role": role,
        "form": bool(form),
    }


async def refuse(call, fault, send):
    code, message = fault["code"], fault.get("message") or "Injected by the fault plan of the sandbox"
    headers = [(b"x-amzn-requestid", b"00000000-0000-0000-0000-000000000000")]
    if call["service"] == "s3":
        text = f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message></Error>"
        headers.append((b"content-type", b"application/xml"))
    elif call["form"]:
        error = f"<Type>Sender</Type><Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        text = f"<ErrorResponse><Error>{error}</Error></ErrorResponse>"
        headers.append((b"content-type", b"text/xml"))
    else:
        text = json.dumps({"__type": code, "message": message})
        headers += [(b"content-type", b"application/x-amz-json-1.0"), (b"x-amzn-errortype", code.encode())]
    body = b"" if call["method"] == "HEAD" else text.encode()
    await send({"type": "http.response.start", "status": fault.get("status", 500), "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def swallow(_message):
    """Discards the answer of a call that takes effect and is then answered with an error."""


async def read_body(receive):
    chunks, more = [], True
    while more:
        message = await receive()
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(chunks)


def replay(body, receive):
    """Returns a receive() that provides the body once more, and then the further messages of the connection."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def again():
        return messages.pop() if messages else await receive()

    return again
