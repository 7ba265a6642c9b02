"""Other durable queues, each as its own documentation uses it; run by a Python that has them, and not relet."""
