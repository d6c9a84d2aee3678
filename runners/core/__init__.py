"""What every room may use: errors, paths, files, locks, hashes, progress, provenance, redaction.

Nothing here knows an engine, a profile or a result; no pandas. Imports nothing of the other rooms.
"""
