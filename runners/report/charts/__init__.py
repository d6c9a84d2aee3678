"""One module a chapter's charts; style.py holds the look of all of them."""
