"""From the ledger to figures: results, intervals, acceptance, step cost, models, forecasts, the verdict.

pandas begins here; nothing is drawn and nothing is measured.
"""
