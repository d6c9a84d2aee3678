"""One file an engine (`ENGINE` in it: command line, environment, capabilities) and its pinned packages beside it.

Nothing here imports an engine: engines have environments of their own and are reached by command line and HTTP. Nothing
here knows of profiles: an engine is asked by a `Serving` (engine.py).
"""
