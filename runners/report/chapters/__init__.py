"""One module a chapter: its tables, its sentences and its glue values."""
