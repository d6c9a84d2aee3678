"""One file an engine: its command line, environment, capabilities and pinned packages.

Nothing here imports an engine: engines live in environments of their own and are reached by command line and HTTP.
"""
