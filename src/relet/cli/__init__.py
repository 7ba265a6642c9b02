"""The command line: each command loads only what it needs, since shell hooks feel the start-up time."""
