#!/bin/sh
# A worker of nothing but a shell, curl and jq, at a `relet serve`: what a worker in any language has to do.
#
#   curl_worker.sh work QUEUE COMMAND...   COMMAND on one task after another: its input on stdin, its result on stdout
#   curl_worker.sh save [NAME] <VALUE      within COMMAND: keep a JSON value for whoever holds the task next
#   curl_worker.sh load [NAME]             within COMMAND: what any holder has kept, or null
#
# RELET_URL says where the service is, RELET_API_KEY or the file of RELET_API_KEY_FILE who asks; RELET_TTL is whole
# seconds, 60 unless set, 6 at least. COMMAND ends with 0 when it is done, with 65 when trying again is of no use.
set -u
umask 077 # the key and the handle are secrets: in files of this user, never among arguments, which everybody can read
say() { echo "curl_worker: $*" >&2; }
misused() { say "$*"; exit 2; }
for tool in curl jq; do
    command -v $tool >/dev/null || misused "$tool is missing: sudo apt-get install -y $tool"
done

# Seconds on a clock that nobody sets and that counts suspend; the wall clock where there is no such thing to read.
now() { if read -r up _ 2>/dev/null </proc/uptime; then echo "${up%%.*}"; else date +%s; fi; }

# ask OPERATION SECONDS TRIES <BODY prints the answer. It ends with 5 when the lease is lost (410). Where the request
# did not happen (503), or nobody knows whether it did (504, no answer), the *same* one is sent again: that is safe
# for all verbs used here. After so many tries, or once this worker is to end or is dead, it ends with 75.
ask() {
    body=$(cat) try=1
    while :; do
        told=$(printf %s "$body" | curl -q -sS --max-time "$2" -w '\n%{http_code}' -H "@$LEASE/header" \
            --data-binary @- "$RELET_URL/v1/$1") || told=503
        status=$(printf %s "$told" | tail -n 1) answer=$(printf %s "$told" | sed '$d')
        [ "$status" != 200 ] || { printf '%s\n' "$answer"; return 0; }
        say "$1: $status $(printf %s "$answer" | jq -r .detail 2>/dev/null)"
        case $status in 410) return 5 ;; 408 | 429 | 502 | 503 | 504) ;; *) return 4 ;; esac
        if [ $try -ge "$3" ] || [ -e "$LEASE/stopping" ] || ! kill -0 $$ 2>/dev/null; then return 75; fi
        sleep $((try < 8 ? try : 8)) && try=$((try + 1))
    done
}

# await PID: how it ended. A shell hears signals while it waits, and not while it runs something: so all is run apart.
await() { while wait "$1"; ended=$?; kill -0 "$1" 2>/dev/null; do :; done; return $ended; }

# beat SECONDS: renew. The lease is trusted from before the request left, for all of it but three seconds: for a
# clock of whole seconds, the sleep below, and to kill the work before the service gives its task to somebody else.
beat() {
    at=$(now)
    renewed=$(jq -c '{handles: [.handle]}' "$LEASE/grant" | ask renew "$1" 1) || return # again within a second
    printf %s "$renewed" | jq -r '.[0].error.message // empty' >&2 # many at once: a refusal is a value in the list
    left=$(printf %s "$renewed" | jq '(.[0].left_ms // 0) / 1000 | floor')
    deadline=$((at + left - 3)) due=$((at + ttl / 3))
}

# keep: heartbeats beside the work. Ends with the worker, whatever killed that, and kills work that has no lease.
keep() {
    while kill -0 $$ 2>/dev/null && t=$(now) && [ "$t" -lt $deadline ]; do
        [ "$t" -lt $due ] || beat $((deadline - t < ttl / 6 ? deadline - t : ttl / 6))
        sleep 1
    done
    : >"$LEASE/lost"
    [ ! -e "$LEASE/working" ] || kill -s KILL -- "-$work"
    kill -0 $$ 2>/dev/null || rm -rf "$LEASE"
}

# end_by OPERATION BODY: the verb that ends the lease. Repeated with the same content it gets the same answer.
end_by() {
    jq -c --slurpfile value "$LEASE/value" --arg code "$code" --arg why "$why" "$2" "$LEASE/grant" |
        ask "$1" 10 999 >"$LEASE/answer" &
    await $! && jq -r '.outcomes[0].error.message // empty' "$LEASE/answer" >&2 # of complete: as of renew
}

# one COMMAND...: the task in `grant`, to its end.
one() {
    rm -f "$LEASE/lost" && echo '[]' >"$LEASE/value"
    ttl=$(jq '.ttl_ms / 1000 | floor' "$LEASE/grant") code=75 why='' deadline=0
    # When a claim that waited was granted, nobody here knows: the first heartbeat tells how long the lease is good.
    beat 5
    [ $deadline -gt "$(now)" ] || { end_by release '{handle}'; return; }
    jq -c .input "$LEASE/grant" >"$LEASE/input"
    RELET_TASK_ID=$(jq -r .handle.task_id "$LEASE/grant") RELET_TOKEN=$(jq .handle.token "$LEASE/grant")
    export RELET_TASK_ID RELET_TOKEN # the token is for whatever else the work writes to
    : >"$LEASE/working"
    $apart "$@" <"$LEASE/input" >"$LEASE/result" & work=$!
    keep & keeper=$!
    await $work; code=$?
    rm "$LEASE/working"
    [ $code != 0 ] || jq -cs 'select(length < 2)' "$LEASE/result" >"$LEASE/value"
    why="the command ended with $code"
    [ -s "$LEASE/value" ] || code=65 why='the output of the command is no JSON, or more than one value of it'
    if [ -e "$LEASE/lost" ]; then say "$RELET_TASK_ID: lost; its work was killed, and nothing of it is handed in"
    elif [ $code = 0 ]; then end_by complete '{completions: [{handle, result: $value[0][0]}]}'
    elif [ -e "$LEASE/stopping" ]; then end_by release '{handle}'
    else end_by fail '{handle, error: $why, retry: ($code != "65")}'
    fi
    { kill $keeper; wait $keeper; } 2>/dev/null
}

verb=${1:-} name=${2:-main}
case $verb in
    save) jq -c --slurpfile grant "$LEASE/grant" --arg name "$name" \
        '{handle: $grant[0].handle, name: $name, value: .}' | ask save 10 999 >/dev/null; exit ;;
    load) jq -c --arg name "$name" '{handle, name: $name}' "$LEASE/grant" | ask load 10 999; exit ;;
esac
[ "$verb" = work ] && [ $# -gt 2 ] && shift 2 || misused "its first lines say how it is called"
case ${RELET_URL:-} in
    http://* | https://*) ;;
    *) misused "RELET_URL is to say where the service is: export RELET_URL=http://127.0.0.1:8787" ;;
esac
case ${RELET_TTL:-60} in
    *[!0-9]* | 0* | [1-5]) misused "RELET_TTL is whole seconds, 6 at least, and not $RELET_TTL" ;;
esac
key=${RELET_API_KEY:-$(cat "${RELET_API_KEY_FILE:-/dev/null}" 2>/dev/null)} ||
    misused "RELET_API_KEY_FILE names $RELET_API_KEY_FILE, which cannot be read: name a file with the key in it"
LEASE=$(mktemp -d) work='' && export LEASE
trap 'rm -rf "$LEASE"' EXIT
trap ': >"$LEASE/stopping"; [ ! -e "$LEASE/working" ] || kill -s TERM -- "-$work"' TERM INT
printf 'Content-Type: application/json\nAuthorization: Bearer %s\n' "$key" >"$LEASE/header"
unset RELET_API_KEY # the work needs none: what it saves is sent with the file above
apart=$(command -v setsid) || set -m # a group of its own, or a job: what the work has started is killed with it

while [ ! -e "$LEASE/stopping" ]; do
    # One id for one claim: sent again after a lost answer it gets the same lease, and never a second one.
    id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    jq -nc --arg holder "$(uname -n):$$" --arg queue "$name" --argjson ttl "${RELET_TTL:-60}" --arg id "$id" \
        '{holder: $holder, queues: [$queue], ttl_ms: ($ttl * 1000), request_id: $id}' |
        ask 'claim?wait=20' 40 999 >"$LEASE/claimed" &
    await $!
    # 5: the lease of a lost answer has ended meanwhile. 75, 143: this worker is to end.
    case $? in 0 | 5 | 75 | 143) ;; *) exit 1 ;; esac
    jq -c '.[0] // empty' "$LEASE/claimed" >"$LEASE/grant"
    [ ! -s "$LEASE/grant" ] || one "$@"
done
exit 0
