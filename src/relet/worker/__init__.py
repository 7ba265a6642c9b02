"""Your function, or any program, under a lease."""
