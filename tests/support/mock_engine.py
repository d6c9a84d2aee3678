"""A server with known times and acceptance that answers as an engine does, and keeps a record of what it really did.

    python mock_engine.py --port N [--ttft-s 0.3] [--step-s 0.02] [--yields 3,2,1,2] [--key K] [--no-metrics]
Each answer has its first token after --ttft-s and then a step every --step-s; step i yields the i-th number of
--yields. GET /record says when each answer arrived, had its first and its last token, and how many it had, by
its own clock: on a loaded machine a pause lasts longer than it was asked to, and this is the truth then.
"""

import argparse
import hashlib
import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = """amber birch cedar delta eagle fjord grove heron inlet jetty knoll larch maple north otter plain quail ridge
slope trail upper vista water yield zebra acorn brook cliff drift earth flint gorge haven islet""".split()

p = argparse.ArgumentParser()
p.add_argument("--port", type=int, required=True)
p.add_argument("--ttft-s", type=float, default=0.3)
p.add_argument("--step-s", type=float, default=0.02)
p.add_argument("--yields", default="1")
p.add_argument("--key")
p.add_argument("--no-metrics", action="store_true")
args = p.parse_args()

YIELDS = [int(n) for n in args.yields.split(",")]
K = max(YIELDS) - 1
LOCK = threading.Lock()
COUNTS = {"running": 0, "steps": 0, "accepted": 0, "tokens": 0}
PER_POSITION = [0] * K
RECORD = []


def metrics():
    with LOCK:
        lines = [
            f'vllm:num_requests_running{{engine="0"}} {COUNTS["running"]}.0',
            'vllm:num_requests_waiting{engine="0"} 0.0',
            f'vllm:generation_tokens_total{{engine="0"}} {COUNTS["tokens"]}.0',
        ]
        if K:
            name = "vllm:spec_decode_num"
            lines += [
                f"{name}_drafts_total {COUNTS['steps']}.0",
                f"{name}_draft_tokens_total {K * COUNTS['steps']}.0",
                f"{name}_accepted_tokens_total {COUNTS['accepted']}.0",
            ]
            lines += [
                f'{name}_accepted_tokens_per_pos_total{{position="{i}"}} {n}.0' for i, n in enumerate(PER_POSITION)
            ]
    return "\n".join(lines) + "\n"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def reply(self, content, code=200):
        body = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refused(self):
        if args.key and self.path.startswith("/v1") and self.headers.get("Authorization") != f"Bearer {args.key}":
            self.reply({"error": f"no such key: {self.headers.get('Authorization')}"}, 401)
            return True
        return False

    def do_GET(self):
        if self.refused():
            return
        if self.path == "/health":
            self.reply("")
        elif self.path == "/v1/models":
            self.reply({"data": [{"id": "mock-model", "owned_by": "vllm", "max_model_len": 4096}]})
        elif self.path == "/version":
            self.reply({"version": "1.2.3"})
        elif self.path == "/metrics" and not args.no_metrics:
            self.reply(metrics())
        elif self.path == "/record":
            self.reply(RECORD)
        else:
            self.reply("no", 404)

    def do_POST(self):
        arrived = time.perf_counter()
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refused():
            return
        with LOCK:
            COUNTS["running"] += 1
        try:
            self.stream(request, arrived)
        except OSError:
            pass  # the client has seen enough
        finally:
            with LOCK:
                COUNTS["running"] -= 1

    def stream(self, request, arrived):
        seed = hashlib.sha256(json.dumps(request["messages"]).encode()).digest()
        words = random.Random(seed)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        wanted, sent, first, now = request["max_tokens"], 0, None, arrived
        for step in range(wanted):
            # By the clock and not by pauses: a late step does not delay the next one.
            due = arrived + args.ttft_s + step * args.step_s
            time.sleep(max(0.0, due - time.perf_counter()))
            full = 1 if step == 0 else YIELDS[step % len(YIELDS)]
            n = min(full, wanted - sent)
            sent += n
            with LOCK:
                COUNTS["tokens"] += n
                if step and K:
                    COUNTS["steps"] += 1
                    COUNTS["accepted"] += full - 1
                    for i in range(full - 1):
                        PER_POSITION[i] += 1
            text = "".join(words.choice(WORDS) + " " for _ in range(n))
            now = time.perf_counter()
            self.event({"choices": [{"delta": {"content": text}}], "usage": self.usage(sent)})
            first = now if first is None else first
            if sent == wanted:
                break
        RECORD.append([arrived, first, now, sent])
        self.event({"choices": [{"delta": {}, "finish_reason": "length"}], "usage": self.usage(sent)})
        self.wfile.write(b"data: [DONE]\n\n")

    def usage(self, sent):
        return {"prompt_tokens": 7, "completion_tokens": sent}

    def event(self, content):
        self.wfile.write(f"data: {json.dumps(content)}\n\n".encode())
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


Server(("127.0.0.1", args.port), Handler).serve_forever()
