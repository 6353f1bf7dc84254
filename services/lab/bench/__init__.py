"""Benchmarks: how soon, how often cut off, how quickly silent, measured from the caller's side.

`python -m services.lab.bench NAME` runs one; docs/metrics.md says what each number means. Everything is
measured over the wire, so that a server elsewhere, or an older commit, can be measured as well.
"""
