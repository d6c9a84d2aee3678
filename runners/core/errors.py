"""Errors that a person can act on."""


class UserError(Exception):
    """Bad input: one sentence that says what must be true, where, and what to do.

    The command line prints it and exits with 2; a notebook shows it as its last line.
    """


class EngineUnavailable(UserError):
    """An engine cannot be installed or started on this machine.

    In a whole report its configurations become "not measured here", with this sentence as the reason. Where the user
    named the engine it ends the command like any `UserError`.
    """
