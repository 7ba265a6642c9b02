"""Durable composition on top of a lease: memoised steps, effects with receipts, waits without a lease."""
