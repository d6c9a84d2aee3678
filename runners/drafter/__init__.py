"""The profile's own drafter: its text, states, training, replay, faults and diagnosis.

Heavy work runs as scripts in the reference environment; nothing is drawn here.
"""
