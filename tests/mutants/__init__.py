"""Faults put into the code on purpose, each with the test that must notice it."""
