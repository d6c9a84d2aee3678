"""Chapter Where speculation pays, part by part: crossover (with the sweeps), forecasts, goodput, next_steps."""
