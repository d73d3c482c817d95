"""A receiver of webhooks over HTTPS, in a thread, which answers as it is told."""

from __future__ import annotations

import base64
import hmac
import json
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"


class Receiver:
    """What arrived; `answers` are the statuses of the first attempts, and None hangs."""

    def __init__(self, certificate: tuple[Path, Path], answers: list[int | None] | None = None) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.answers, self.ca = answers or [], certificate[0]
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                told = {name.lower(): value for name, value in self.headers.items()}
                receiver.got.append((self.path, told, body))
                status = receiver.answers.pop(0) if receiver.answers else 204
                if status is None:
                    time.sleep(20)
                    return
                self.send_response(status)
                self.send_header("location", "/elsewhere")
                self.end_headers()

            do_GET = do_POST  # noqa: N815

            def log_message(self, *_: Any) -> None:
                """Nothing is logged."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*map(str, certificate))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}/trial"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def messages(self) -> list[dict[str, Any]]:
        """What was told, each with its id, after a check of the signature."""
        found = []
        for _, headers, body in self.got:
            name, seconds = headers["webhook-id"], headers["webhook-timestamp"]
            mark = hmac.digest(KEY, f"{name}.{seconds}.".encode() + body, "sha256")
            assert headers["webhook-signature"] == f"v1,{base64.b64encode(mark).decode()}"
            assert abs(int(seconds) - time.time()) < 60
            found.append({"id": name, **json.loads(body)})
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def until(done: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait for something to be true."""
    end = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
    return found
