"""Other durable queues on SQLite, each as its own documentation uses it; run by a Python that has them, not relet."""
