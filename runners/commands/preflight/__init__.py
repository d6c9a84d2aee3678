"""`specverdict preflight`: the target, the machine, each configuration, each command line."""
