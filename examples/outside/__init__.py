"""What stands outside of the worker in the larger examples: a model, services on this machine, processes."""
