#!/usr/bin/env bash
# Starts and stops the name server and the broker that run.sh has laid out in a folder.
#
#   cluster.sh DIR start|stop|kill namesrv|broker|broker2
#
# `start` returns when the process serves, `stop` and `kill` when it is gone; each is content when that is so already.
# Processes are ended by their own id only.
set -euo pipefail

dir=$1 action=$2 what=$3
pid_file=$dir/$what.pid
log=$dir/$what.log
# JAVA, CLASSPATH_DIR and the ports.
. "$dir/env"

fail() {
    echo "cluster.sh: $*" >&2
    exit 1
}

running() {
    [ -s "$pid_file" ] && kill -0 "$(cat "$pid_file")" 2>/dev/null
}

# The system properties raise the disk usage at which a broker refuses messages or deletes files: a test machine may be full.
# The exports and opens let 4.9.x unmap its files on a JDK with modules.
options=(
    -Xms256m -Xmx512m -XX:+UseSerialGC "-Duser.home=$dir" "-Drocketmq.home.dir=$dir/home"
    -Drocketmq.broker.diskSpaceWarningLevelRatio=0.99 -Drocketmq.broker.diskSpaceCleanForciblyRatio=0.98
    --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED --add-opens=java.base/java.nio=ALL-UNNAMED
    --add-opens=java.base/sun.nio.ch=ALL-UNNAMED
)

start() {
    local main config
    if running; then return 0; fi
    case $what in
        namesrv) main=org.apache.rocketmq.namesrv.NamesrvStartup config=$dir/namesrv.properties ;;
        broker | broker2) main=org.apache.rocketmq.broker.BrokerStartup config=$dir/$what.conf ;;
        *) fail "unknown process '$what'" ;;
    esac
    [ -e "$log" ] && cat "$log" >>"$dir/$what.earlier.log"
    : >"$log"
    setsid "$JAVA" "${options[@]}" -cp "$dir/logging:$CLASSPATH_DIR/*" "$main" -c "$config" >"$log" 2>&1 </dev/null &
    echo $! >"$pid_file"
    local deadline=$((SECONDS + 120))
    until grep -q 'boot success' "$log"; do
        running || fail "$what ended while it started, see $log: $(tail -n 5 "$log")"
        [ $SECONDS -lt $deadline ] || fail "$what did not come up within 120 s, see $log"
        sleep 0.1
    done
}

stop() {
    local signal=$1 deadline=$((SECONDS + 60))
    running || return 0
    kill "-$signal" "$(cat "$pid_file")"
    while running; do
        [ $SECONDS -lt $deadline ] || kill -KILL "$(cat "$pid_file")" 2>/dev/null || true
        sleep 0.1
    done
    rm -f "$pid_file"
}

case $action in
    start) start ;;
    stop) stop TERM ;;
    kill) stop KILL ;;
    *) fail "unknown action '$action'" ;;
esac
