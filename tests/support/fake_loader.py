"""A stand-in for an engine that loads 547 GB: slow, silent, a rank lost, in a livelock; it answers /health at its end.

    python fake_loader.py --port N --weights FILE SCRIPT
SCRIPT: steps one after the other, each `name` or `name:seconds`:
  read       read the (sparse) weights file at --rate bytes a second
  news       write a new log line every half second and do nothing else
  heartbeat  write the same line, with the time of day, every half second
  compute    burn CPU, with a new log line every second, as a kernel compiler does
  grow       take memory, eight megabytes every half second
  spin       burn CPU and nothing else
  silent     nothing at all
  lose-rank  a second process, which had worked, is killed once the file --go is there; the first waits for it
  kill       killed by signal 9, as the kernel does when memory runs out
  error      the engine's own error, then its end
"""

import argparse
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

p = argparse.ArgumentParser()
p.add_argument("--port", type=int, required=True)
p.add_argument("--weights")
p.add_argument("--rate", type=float, default=2e9)
p.add_argument("--go")
p.add_argument("script", nargs="*")
args = p.parse_args()


def say(text):
    print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')} TP0] {text}", flush=True)


def burn(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def read(seconds):
    until, chunk = time.monotonic() + seconds, 1 << 20
    with open(args.weights, "rb") as weights:
        while time.monotonic() < until:
            began = time.monotonic()
            weights.read(chunk)
            time.sleep(max(0.0, chunk / args.rate - (time.monotonic() - began)))


def every(seconds, step, pause=0.5):
    until, i = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        step(i)
        i += 1
        time.sleep(pause)


def lose_rank(seconds):
    child = os.fork()
    if not child:
        while time.process_time() < 0.5:  # CPU time, not the clock's: on a loaded machine it takes longer
            pass
        say("rank 1 has worked")
        burn(300)  # still at work: a silent one might be called stalled before it is killed
    while not os.path.exists(args.go):
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    time.sleep(seconds)


kept = []
STEPS = {
    "read": read,
    "news": lambda s: every(s, lambda i: say(f"Loading safetensors checkpoint shards: {i} of 64")),
    "heartbeat": lambda s: every(s, lambda i: say("still waiting for the other ranks")),
    "compute": lambda s: every(s, lambda i: (say(f"compiling kernel {i}"), burn(1.0)), 0),
    "grow": lambda s: every(s, lambda i: kept.append(bytearray(os.urandom(1) * (8 << 20)))),
    "spin": burn,
    "silent": time.sleep,
    "lose-rank": lose_rank,
    "kill": lambda s: os.kill(os.getpid(), signal.SIGKILL),
    "error": lambda s: (say("RuntimeError: rank 3 timed out in the all-reduce"), sys.exit(1)),
}
PHASES = {"read": "loading weights", "news": "loading weights", "compute": "capturing graphs"}


class Healthy(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200)
        self.end_headers()


say("starting")
for step in args.script:
    name, _, seconds = step.partition(":")
    if name in PHASES:
        print(PHASES[name], flush=True)
    STEPS[name](float(seconds or 300))
HTTPServer(("127.0.0.1", args.port), Healthy).serve_forever()
