"""The verdict: decided (decide.py), explained in words (explain.py), stored (store.py)."""
