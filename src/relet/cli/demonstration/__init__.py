"""`relet demo`: real processes, one frozen, one killed; each line that is told is an assertion that could fail."""
