#!/bin/sh
# Clears up after what died, every 30 seconds (or EVERY): for boards whose agents all run on other machines, or by hand.
# Agents do it for each other, so beside a `tavern-agent` or an agent-loop.sh there is no need of this.
# Ends on Ctrl-C, on a signal and on .tavern/STOP. Arguments go to tavern-reap.
set -u
child=''
trap 'kill $child 2>/dev/null; exit 130' INT
trap 'kill $child 2>/dev/null; exit 143' TERM HUP
until tavern-status --format json | grep -q '"kind":"switch","state":"stopped"'; do
    tavern-reap "$@" || exit
    sleep "${EVERY:-30}" & child=$!
    wait "$child"
done
