"""From the typed program to StableHLO."""
