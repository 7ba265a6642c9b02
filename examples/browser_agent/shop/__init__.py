"""The shop that the agent works in: a small web site, a process of its own, which forgets nothing when agents die."""
