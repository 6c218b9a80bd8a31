"""A large made-up project: what a team writes, many times over, always the same for one seed."""
