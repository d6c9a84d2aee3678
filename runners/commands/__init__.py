"""One module a command of `specverdict`: its arguments, and what it calls.

Commands print and return an exit code; what they need done lives in the other rooms.
"""
