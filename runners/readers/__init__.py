"""Text in, records out: what an engine's log, /metrics or JSON says, one module (or package) an engine.

Nothing here starts, asks or imports an engine, so a log from a box far away reads the same. No pandas.
"""
