"""fnad against what its users would otherwise pick: `python -m benchmarks [NAME...]` prints one table with ratios.

A problem is one file in `benchmarks/problems`: the plain NumPy function that fnad takes as it is, idiomatic versions
for the peers, and a derivative written by hand for Numba. Within a case all systems must first agree on the result;
then they are timed in turn (A B C A B C ...), on one core, and the table shows medians. `--report` times the
field's problems on one core and on two, and writes `RESULTS.md`.
"""
