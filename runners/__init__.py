"""specverdict: should speculative decoding be on, with which drafter, at which concurrency, on this box?"""

__version__ = "0.1.0"
