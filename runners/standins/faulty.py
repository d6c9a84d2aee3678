"""A stand-in for a server with OpenAI's interface that breaks in one way, chosen by the first part of the path.

    python faulty.py --port 8000
http://127.0.0.1:8000/good answers as an engine does, http://127.0.0.1:8000/usage-negative counts -32 tokens, and so on
(fault_streams.py). Standard library only. Nothing it says was measured.
"""

import argparse
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fault_streams import HEADS, METRICS, STREAMS, Part, endless, good


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, text: str, status: int = 200):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def asked(self) -> tuple[str, str]:
        """(the fault, the path behind it); a path without a fault is good."""
        name, _, path = self.path[1:].partition("/")
        return ("good", self.path[1:]) if name in ("health", "metrics", "v1") else (name, path)

    def do_GET(self):
        name, path = self.asked()
        if path == "metrics":
            self.metrics(name)
        elif path == "v1/models":
            self.reply(json.dumps({"data": [{"id": "faulty", "owned_by": "vllm"}]}))
        else:
            self.reply("ok" if path == "health" else "", 200 if path == "health" else 404)

    def metrics(self, name: str):
        if name != "metrics-endless":
            return self.reply(METRICS.get(name, ""), 200 if name in METRICS else 404)
        self.head(200, {})
        self.send(endless(b"vllm:num_requests_running 0.0\n" * 1000, 0.01)(0))

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name, _ = self.asked()
        if name == "compresses-if-offered" and "gzip" not in self.headers.get("Accept-Encoding", ""):
            name = "good"
        self.head(*HEADS.get(name, (200, {})))
        self.send(STREAMS.get(name, good)(asked["max_tokens"]))

    def head(self, status: int, headers: dict[str, str]):
        self.send_response(status)
        for key, value in ({"Content-Type": "text/event-stream", "Connection": "close"} | headers).items():
            self.send_header(key, value)
        self.end_headers()
        self.close_connection = True

    def send(self, stream: Iterator[Part]):
        try:
            for part in stream:
                if isinstance(part, float):
                    self.server.closing.wait(part)
                else:
                    self.wfile.write(part)
                    self.wfile.flush()
                if self.server.closing.is_set():
                    return
        except OSError:
            pass  # the client has seen enough


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int = 0):
        self.closing = threading.Event()  # ends what never ends
        super().__init__(("127.0.0.1", port), Handler)


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, required=True)
    server = Server(p.parse_args().port)
    print(f"faults: {', '.join(sorted({*STREAMS, *METRICS}))}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
