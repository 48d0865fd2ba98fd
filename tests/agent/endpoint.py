"""A local HTTP endpoint that answers by script, one step a request, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


def completion(content: object) -> bytes:
    """The body of a chat completion."""
    message = {"role": "assistant", "content": content}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}).encode()


@dataclass(frozen=True)
class Step:
    """One answer. After `delay_s` seconds, or cut off after the header where `cut`."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=lambda: {"retry-after-ms": "1"})
    content_type: str = "application/json"
    delay_s: float = 0.0
    cut: bool = False


class Endpoint:
    """`with Endpoint(step, step) as endpoint`: `.url`, `.asked` (JSON bodies), `.keys`. The last step repeats."""

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.asked: list[dict] = []
        self.keys: list[str | None] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                endpoint._answer(self)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Endpoint:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(json.loads(request.rfile.read(int(request.headers["content-length"]))))
        self.keys.append(request.headers["authorization"])
        step = self.steps[min(len(self.asked), len(self.steps)) - 1]
        time.sleep(step.delay_s)
        request.send_response(step.status)
        request.send_header("content-type", step.content_type)
        request.send_header("content-length", str(len(step.body)))
        for name, value in step.headers.items():
            request.send_header(name, value)
        request.end_headers()
        if step.cut:
            request.close_connection = True
            return
        request.wfile.write(step.body)
