"""A stand-in for SGLang or vLLM in a rehearsal: an engine's lines, caps, counters and pace, and no model.

    python engine.py sglang|vllm [--fault die|stall|lie] ENGINE'S OWN FLAGS...
It takes the engine's own command line, prints its load lines in compressed time, keeps to the cap on running requests,
streams words at the pace in REHEARSAL_SPEEDS (JSON: step_s_1, step_s_full in seconds, full, accept_length, load_s), and
answers /metrics, /server_info and /version as the engine does. Standard library only. Nothing it says was measured.
"""

import argparse
import hashlib
import json
import os
import queue
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = """harbour engine lantern copper meadow signal winter paper river garden stone bridge market silver window
forest letter morning canvas island thunder ladder orchard pebble quarry saddle timber valley anchor basket candle
desert ember feather glacier hammer ivory jungle kernel lemon mirror needle ocean pillar quilt ribbon summit tunnel
""".split()
OWN_K = 3  # draft tokens where the command line names none


def flags(words: list[str]) -> dict[str, str]:
    """--name value pairs and bare flags of an engine's command line."""
    found, i = {}, 0
    while i < len(words):
        if words[i].startswith("--"):
            bare = i + 1 >= len(words) or words[i + 1].startswith("--")
            found[words[i][2:]] = "" if bare else words[i + 1]
            i += 1 if bare else 2
        else:
            i += 1
    return found


class Engine:
    """One step at a time over at most `cap` requests, as a scheduler does."""

    def __init__(self, kind: str, given: dict[str, str], speeds: dict):
        self.kind, self.speeds = kind, speeds
        self.speculative = json.loads(given.get("speculative-config") or "{}")
        if kind == "vllm":
            self.k = int(self.speculative.get("num_speculative_tokens", OWN_K if self.speculative else 0))
            self.cap = int(given.get("max-num-seqs", 128))
        else:
            tokens = int(given.get("speculative-num-draft-tokens", OWN_K + 1))  # the bonus position counted in
            self.k = tokens - 1 if "speculative-algorithm" in given else 0
            # SGLang's defaults with and without speculation.
            self.cap = int(given.get("max-running-requests", 48 if self.k else 2048))
        self.interval = int(given.get("decode-log-interval", 40))
        self.waiting: queue.SimpleQueue = queue.SimpleQueue()
        self.running: list[dict] = []
        self.lock = threading.Lock()
        self.steps = self.drafted = self.accepted = self.tokens = self.passes = 0
        self.per_position = [0] * self.k
        self.window = [0, 0]  # verification steps and accepted drafts since the last line
        self.random = random.Random(7)

    def step_seconds(self, batch: int) -> float:
        """Of one step in seconds: linear in the running batch between the two points that were reported."""
        s = self.speeds
        share = (batch - 1) / max(s["full"] - 1, 1)
        return s["step_s_1"] + share * (s["step_s_full"] - s["step_s_1"])

    def draws(self) -> int:
        """Drafts accepted in one step: each position with one chance, such that the mean is the accept length."""
        wanted, chance = self.speeds["accept_length"], 0.0
        for _ in range(40):  # 1 + p + p^2 + ... + p^K = accept length
            total = sum(chance**i for i in range(self.k + 1))
            chance = min(1.0, max(0.0, chance + 0.2 * (wanted - total)))
        n = 0
        while n < self.k and self.random.random() < chance:
            n += 1
        return n

    def loop(self) -> None:
        while True:
            while len(self.running) < self.cap and not self.waiting.empty():
                self.running.append(self.waiting.get())
            if not self.running:
                self.running.append(self.waiting.get())
                continue
            time.sleep(self.step_seconds(len(self.running)))
            with self.lock:
                self.step()

    def step(self) -> None:
        batch, made = len(self.running), 0
        self.running = [r for r in self.running if not r["gone"]]
        for request in self.running:
            n = 1
            if self.k and request["sent"]:
                got = self.draws()
                self.steps, self.drafted, self.accepted = self.steps + 1, self.drafted + self.k, self.accepted + got
                self.window = [self.window[0] + 1, self.window[1] + got]
                for position in range(got):
                    self.per_position[position] += 1
                n += got
            n = min(n, request["wanted"] - request["sent"])
            request["sent"] += n
            request["out"].put(n)
            made += n
        self.tokens += made
        self.passes += 1
        self.running = [r for r in self.running if r["sent"] < r["wanted"]]
        if self.kind == "sglang" and self.passes % self.interval == 0:
            self.say_decode(batch, made)

    def say_decode(self, batch: int, made: int) -> None:
        text = f"Decode batch, #running-req: {batch}, #token: {100 * batch}, token usage: 0.01, "
        if self.k and self.window[0]:
            length = 1 + self.window[1] / self.window[0]
            text += f"accept len: {length:.2f}, accept rate: {length / (self.k + 1):.2f}, "
        pace = made / self.step_seconds(batch)
        stamp(f"{text}cuda graph: True, gen throughput (token/s): {pace:.2f}, #queue-req: {self.waiting.qsize()}")
        self.window = [0, 0]


def stamp(text: str) -> None:
    print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')} TP0] {text}", flush=True)


def say_vllm(text: str, file: str = "gpu_model_runner.py:100") -> None:
    print(f"(EngineCore pid={os.getpid()}) INFO {time.strftime('%m-%d %H:%M:%S')} [{file}] {text}", flush=True)


def load(kind: str, engine: Engine, seconds: float) -> None:
    """The engine's own load lines, in compressed time."""
    part = seconds / 10
    if kind == "sglang":
        stamp(f"server_args=ServerArgs(speculative_num_draft_tokens={engine.k + 1 if engine.k else None})")
        stamp("Init torch distributed begin.")
        for name in ("TargetModel", "LlamaForCausalLMEagle3")[: 2 if engine.k else 1]:
            stamp("Load weight begin. avail mem=94.00 GB")
            for i in range(4):
                time.sleep(part)
                print(
                    f"Loading safetensors checkpoint shards: {25 * (i + 1)}% Completed | {16 * (i + 1)}/64", flush=True
                )
            stamp(f"Load weight end. elapsed={4 * part:.2f} s, type={name}, dtype=torch.bfloat16, avail mem=25.00 GB")
        stamp("KV Cache is allocated. #tokens: 500000")
        stamp("Capture cuda graph begin. This can take up to several minutes. avail mem=20.00 GB")
        time.sleep(part)
        if engine.k:
            stamp("Capture draft cuda graph begin. This can take up to several minutes. avail mem=18.00 GB")
            time.sleep(part)
        print("INFO:     Application startup complete.", flush=True)
        return
    say_vllm("Initializing a V1 LLM engine (v0.0.0) with config: rehearsal", "core.py:90")
    say_vllm("Starting to load model rehearsal...")
    time.sleep(6 * part)
    say_vllm(f"Model loading took 68.0 GiB and {6 * part:.2f} seconds")
    print("Capturing CUDA graphs (decode, FULL):  50%|#####     | 5/10", flush=True)
    time.sleep(part)
    print(f"(APIServer pid={os.getpid()}) INFO:     Application startup complete.", flush=True)


def metrics(engine: Engine) -> str:
    if engine.kind == "sglang":
        lines = [
            f'sglang:num_running_reqs{{tp_rank="0"}} {len(engine.running)}.0',
            f'sglang:num_queue_reqs{{tp_rank="0"}} {engine.waiting.qsize()}.0',
            f"sglang:generation_tokens_total{{}} {engine.tokens}.0",
        ]
        return "\n".join(lines) + "\n"
    lines = [
        f'vllm:num_requests_running{{engine="0"}} {len(engine.running)}.0',
        f'vllm:num_requests_waiting{{engine="0"}} {engine.waiting.qsize()}.0',
        f'vllm:generation_tokens_total{{engine="0"}} {engine.tokens}.0',
    ]
    if engine.k:
        lines += [
            f'vllm:spec_decode_num_drafts_total{{engine="0"}} {engine.steps}.0',
            f'vllm:spec_decode_num_draft_tokens_total{{engine="0"}} {engine.drafted}.0',
            f'vllm:spec_decode_num_accepted_tokens_total{{engine="0"}} {engine.accepted}.0',
            *(
                f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="{i}"}} {n}.0'
                for i, n in enumerate(engine.per_position)
            ),
        ]
    return "\n".join(lines) + "\n"


def text_of(prompt: str) -> list[str]:
    """Words that depend on the prompt alone: at temperature 0 speculation does not change an answer."""
    seed = random.Random(hashlib.sha256(prompt.encode()).digest())
    return [seed.choice(WORDS) for _ in range(4096)]


def handler(engine: Engine, fault: str | None) -> type:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def reply(self, text: str, kind: str = "text/plain"):
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def do_GET(self):
            if self.path == "/metrics":
                with engine.lock:
                    self.reply(metrics(engine))
            elif self.path == "/server_info":
                length = 1 + engine.accepted / engine.steps if engine.steps else None
                state = {"effective_max_running_requests_per_dp": engine.cap, "avg_spec_accept_length": length}
                self.reply(json.dumps({"version": "stand-in", "internal_states": [state]}), "application/json")
            elif self.path == "/version":
                self.reply(json.dumps({"version": "stand-in"}), "application/json")
            else:
                self.reply("ok")

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if fault == "stall":
                time.sleep(3600)
            if fault == "die":
                print('Traceback (most recent call last):\n  File "stand_in.py", line 1, in step', flush=True)
                print("RuntimeError: CUDA error: an illegal memory access was encountered (stand-in)", flush=True)
                os._exit(1)
            prompt = json.dumps(asked["messages"])
            words = ["lie"] * 4096 if fault == "lie" else text_of(prompt)
            wanted, out = asked["max_tokens"], queue.SimpleQueue()
            request = {"wanted": wanted, "sent": 0, "out": out, "gone": False}
            engine.waiting.put(request)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            sent = 0
            try:
                while sent < wanted:
                    n = out.get()
                    text = " ".join(words[sent : sent + n]) + " "
                    sent += n
                    self.event({"choices": [{"delta": {"content": text}}]})
                self.event({"choices": [{"delta": {}, "finish_reason": "length"}]})
                self.event({"choices": [], "usage": {"prompt_tokens": len(prompt) // 4, "completion_tokens": wanted}})
                self.wfile.write(b"data: [DONE]\n\n")
            except OSError:
                request["gone"] = True  # the client has closed the connection: nothing more is made for it

        def event(self, content: dict):
            self.wfile.write(f"data: {json.dumps(content)}\n\n".encode())
            self.wfile.flush()

    return Handler


class Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("kind", choices=("sglang", "vllm"))
    p.add_argument("--fault", choices=("die", "stall", "lie"))
    args, rest = p.parse_known_args()
    given = flags(rest)
    speeds = json.loads(os.environ["REHEARSAL_SPEEDS"])
    engine = Engine(args.kind, given, speeds)
    load(args.kind, engine, speeds.get("load_s", 2.0))
    threading.Thread(target=engine.loop, daemon=True).start()
    server = Server((given.get("host", "127.0.0.1"), int(given["port"])), handler(engine, args.fault))
    if args.kind == "sglang":
        stamp("The server is fired up and ready to roll!")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
