"""Traces: when each block of a launch is where, how long it waits, and what makes the launch slow."""
