"""`pscdsl check`: findings, settings, reports, budgets, worker processes."""
