"""The pages, and what makes the parts of them that are read from the code."""
