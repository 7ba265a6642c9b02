"""A browser agent that buys one book, and buys it once, whatever happens to the process it runs in."""
