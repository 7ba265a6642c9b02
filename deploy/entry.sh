#!/bin/sh
# What a container runs: `relet` itself, as the process that gets the signals; the password of its database is in a file.
set -eu
if [ -n "${PGPASSWORD_FILE:-}" ]; then
    PGPASSWORD=$(cat "$PGPASSWORD_FILE")
    export PGPASSWORD
fi
exec relet "$@"
