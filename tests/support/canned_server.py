"""A small HTTP server in this process that answers each path with what a test gives it."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def canned(answers, key=None, guarded="/v1"):
    """Its address. answers: path -> text, or what becomes JSON, or an int for a bare status; other paths answer 404.

    key: what `Authorization` must hold, behind "Bearer", where a path begins with `guarded`.
    """

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            found = answers.get(self.path, 404)
            if key and self.path.startswith(guarded) and self.headers.get("Authorization") != f"Bearer {key}":
                found = 401
            body = b"" if isinstance(found, int) else found if isinstance(found, str) else json.dumps(found)
            body = body.encode() if isinstance(body, str) else body
            self.send_response(found if isinstance(found, int) else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
