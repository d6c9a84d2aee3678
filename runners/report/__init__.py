"""What readers see: chapters, charts, the book, the README, archives.

Altair and IPython begin here; nothing is measured and no figure is computed that another room could own.
"""
