"""The crash kit: runs a user's own task again and again, kills or freezes whoever holds it, and judges what is left.

Its way in is `relet.testing.crash_test`, and `relet crashtest` on the command line.
"""
