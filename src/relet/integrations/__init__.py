"""What agents are made with, joined to leases: each file needs its own extra, and nothing here loads by itself."""
