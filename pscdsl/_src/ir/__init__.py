"""The typed program and its primitives; the builder and the evaluator."""
