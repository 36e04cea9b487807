"""Tuning: which constants, schedule and grid of a kernel are fastest, with every candidate judged before it is timed.

`space` says what there is to try, `problem` what it is tried on, `judging` judges one variant in whatever process it
is called, `executor` runs such judgements elsewhere and outlives their crashes, `search` puts these together.
"""
