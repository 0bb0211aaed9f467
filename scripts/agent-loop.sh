#!/bin/sh
# One agent as a shell loop: what `tavern-agent` does, over the small programs, which must be on the PATH.
#   scripts/agent-loop.sh [--until-empty] [FLAGS OF tavern-claim, such as --role or --runner]
# Ends on Ctrl-C, on a signal and on .tavern/STOP, and if its flags are wrong; what else keeps it from taking an item is
# looked at again after 30 seconds (or EVERY); with --until-empty only a busy board is. Waits while there is .tavern/PAUSE.
# If it is killed, its item is free.
set -u
wait=30s over=none ended='' child='' out=$(mktemp)
[ "${1-}" != --until-empty ] || { wait=0s over=3 && shift; }
export TAVERN_AGENT="${TAVERN_AGENT:-loop-$$}"
trap 'rm -f "$out"' EXIT
trap 'ended=130' INT # a terminal has sent it to the child too
trap 'ended=143; [ -z "$child" ] || kill "$child"' TERM HUP
run() { # in the background, so that a signal is heard at once
    "$@" & child=$!
    while wait "$child"; code=$?; kill -0 "$child" 2>/dev/null; do :; done
    child='' && return "$code"
}
while [ -z "$ended" ]; do
    run tavern-reap
    [ -z "$ended" ] || break
    run tavern-claim --role coder --pid $$ --wait="$wait" --format env "$@" >"$out"
    [ "$code" != 4 ] && [ "$code" != "$over" ] || exit 0 # .tavern/STOP; nothing left to take
    [ "$code" != 3 ] || continue
    [ -z "$ended" ] && [ "$code" != 2 ] || exit "${ended:-2}" # wrong flags
    if [ "$code" != 0 ]; then # a busy board, a full disk: it may pass
        [ "$code" = 75 ] || [ "$over" = none ] || exit "$code"
        sleep "${EVERY:-30}" & child=$!
        wait "$child"; kill "$child" 2>/dev/null; child=''
        continue
    fi
    eval "export $(cat "$out")"
    run tavern-spawn
    run tavern-report || [ "$code" != 2 ] || run tavern release --reason 'its agent could not be started'
    run tavern merge
done
exit "$ended"
