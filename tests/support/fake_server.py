"""A small program that behaves like an engine, by flags: the watcher's and the client's counterpart in tests.

It prints phase lines, loads slowly or not at all, dies, goes silent, leaves a child that ignores TERM,
and answers /health, /metrics and a streamed /v1/chat/completions.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

p = argparse.ArgumentParser()
p.add_argument("--port", type=int, required=True)
p.add_argument("--load-s", type=float, default=0.2)
p.add_argument("--busy", action="store_true", help="burn CPU while loading")
p.add_argument("--silent-forever", action="store_true")
p.add_argument("--die", choices=["traceback", "kill", "exit"])
p.add_argument("--die-after-requests", type=int)
p.add_argument("--stubborn-child", action="store_true")
p.add_argument("--worker", choices=["stays", "ends"], help="a child that works; nobody collects it when it ended")
p.add_argument("--token-s", type=float, default=0.006)  # slow enough for the client gate
p.add_argument("--stop-at", type=int, default=10**9, help="answers end early, as if ignore_eos did not hold")
p.add_argument("--no-usage", action="store_true")
p.add_argument("--loop", action="store_true", help="answer one word over and over")
p.add_argument("--thinks", type=int, default=0, help="so many tokens of each answer are thoughts")
p.add_argument("--hang", action="store_true", help="accept a request and never answer")
args, _ = p.parse_known_args()  # an engine's own flags pass by

STATE = {"running": 0, "requests": 0, "drafts": 0}
LOCK = threading.Lock()
TEXT = """the tower by the sea was built of grey stone and its lamp could be seen far away at night because
every ship needs a sign to find home when storms hide all other lights along a rocky coast"""
WORDS = TEXT.split()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def reply(self, text, code=200, kind="text/plain"):
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/health":
            self.reply("ok")
        elif self.path == "/metrics":
            self.reply(
                "# TYPE vllm:num_requests_running gauge\n"
                f"vllm:num_requests_running {STATE['running']}.0\nvllm:num_requests_waiting 0.0\n"
                "# TYPE vllm:spec_decode_num_drafts counter\n"
                f"vllm:spec_decode_num_drafts_total {STATE['drafts']}.0\n"
                f"vllm:spec_decode_num_draft_tokens_total {STATE['drafts'] * 3}.0\n"
                "vllm:spec_decode_num_accepted_tokens_total 0.0\n"
            )
        else:
            self.reply("no", 404)

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with LOCK:
            STATE["requests"] += 1
            STATE["running"] += 1
            number = STATE["requests"]
        try:
            if args.die_after_requests is not None and number > args.die_after_requests:
                print("Traceback (most recent call last):\nRuntimeError: the engine core broke", flush=True)
                os._exit(1)
            if args.hang:
                time.sleep(60)
            self.stream(request)
        except OSError:
            pass
        finally:
            with LOCK:
                STATE["running"] -= 1

    def stream(self, request):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()

        def send(event):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()

        n = min(request["max_tokens"], args.stop_at)
        send({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        for i in range(n):
            time.sleep(args.token_s)
            word = "loop" if args.loop else WORDS[i % len(WORDS)]
            word = f"slot-{request['id_slot']}" if "id_slot" in request else word
            send({"choices": [{"delta": {"reasoning" if i < args.thinks else "content": word + " "}}]})
            with LOCK:
                STATE["drafts"] += 1
        send({"choices": [{"delta": {}, "finish_reason": "length"}]})
        if not args.no_usage:
            send({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": n}})
        self.wfile.write(b"data: [DONE]\n\n")


def main():
    print("loading weights", flush=True)
    if args.stubborn_child:
        code = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"
        child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        print(f"child {child.pid}", flush=True)
    if args.worker:
        child = os.fork()
        if not child:
            until = time.process_time() + 0.5
            while time.process_time() < until:
                pass
            if args.worker == "stays":
                time.sleep(300)
            os._exit(0)
        print(f"child {child}", flush=True)
    if args.silent_forever:
        time.sleep(300)
    until = time.monotonic() + args.load_s
    while time.monotonic() < until:
        if not args.busy:
            time.sleep(0.02)
    if args.die == "traceback":
        print("Traceback (most recent call last):\nValueError: the drafter has no lm_head", flush=True)
        print("RuntimeError: engine core initialization failed", flush=True)
        sys.exit(1)
    if args.die == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if args.die == "exit":
        sys.exit(3)
    print("warming up", flush=True)
    ThreadingHTTPServer(("127.0.0.1", args.port), Handler).serve_forever()


main()
