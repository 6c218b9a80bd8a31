"""Budgets: bounds on what kernels cost, `# psc: budget flops <= 2*n*d`, proven for all sizes."""
