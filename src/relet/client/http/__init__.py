"""The store at the other end of HTTP: requests go to a service as they go to an engine."""
