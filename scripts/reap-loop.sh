#!/bin/sh
# Clears up after what died, every 30 seconds (or EVERY): for boards whose agents all run on other machines, or by hand.
# Agents do it for each other, so beside a `tavern-agent` or an agent-loop.sh there is no need of this.
# Ends on Ctrl-C, on a signal and on .tavern/STOP, and if its arguments, which go to tavern-reap, are wrong. What else fails
# is tried again.
set -u
child=''
trap 'kill $child 2>/dev/null; exit 130' INT
trap 'kill $child 2>/dev/null; exit 143' TERM HUP
until tavern status --format json | grep -q '"kind":"switch","state":"stopped"'; do
    tavern-reap "$@" || [ $? != 2 ] || exit 2
    sleep "${EVERY:-30}" & child=$!
    wait "$child"
done
