"""What several rooms ask of a local disk: bytes that stay, a lock with patience, and that it is no shared drive."""
