"""A process beside this one, that renews what this one may be too busy to renew."""
