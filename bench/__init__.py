"""The benches: relet against the bare loops that do no more than it must, on this machine, in one run."""
