"""The command line: every verb from a shell, data on stdout and talk on stderr."""
