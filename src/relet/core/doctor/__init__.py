"""What is amiss with a store: facts, and pure findings over them."""
