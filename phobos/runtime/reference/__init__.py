"""The reference runtime: a program in NumPy, exact, with every fault between blocks found and named."""
