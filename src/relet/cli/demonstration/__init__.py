"""`relet demo`: real processes, one of them frozen; each line that is told is an assertion that could fail."""
