"""A draft that a person decides on, for as long as that takes, and that is published once."""
