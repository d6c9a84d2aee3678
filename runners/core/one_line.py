"""A text from outside in one line, fit for a terminal and a file."""


def one_line(text: str, longest: int = 300) -> str:
    """At most `longest` characters of the text; what is no printable character (a line end, ESC, which a terminal
    obeys, half of a surrogate pair) becomes a space.
    """
    return "".join(c if c.isprintable() else " " for c in text[:longest]).strip()
