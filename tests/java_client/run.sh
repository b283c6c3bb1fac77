#!/usr/bin/env bash
# The official Java clients and admin tools on the embedded cluster, which runs as a process of its own.
#
#   tests/java_client/run.sh [VERSION...]             each version of client and tools against examples/embedded.rs
#   SUITE_CASES="word word" tests/java_client/run.sh  only the cases whose name contains one of the words
#   NAMESRV_ADDR=HOST:PORT tests/java_client/run.sh VERSION   the same cases on a cluster that runs already, such as a real one
#
# Without a version: the newest 5.x and the newest 4.9.x that resolve. Java and Maven are installed when they are missing; jars
# are kept under target/ and shared with the suite of real brokers.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${CARGO_TARGET_DIR:-$root/target}/real-broker suite="java client"
. "$here/../real_broker/artifacts.sh"
failed=0 cluster_pid= work=

stop_cluster() {
    [ -n "$cluster_pid" ] || return 0
    kill "$cluster_pid" 2>/dev/null || true
    wait "$cluster_pid" || say "the embedded cluster ended with $?"
    cluster_pid=
}

# Sets `address`. The delays are short, so that retries come in seconds.
start_cluster() {
    local deadline=$((SECONDS + 30))
    RUST_LOG=${RUST_LOG:-warn} "$build/../debug/examples/embedded" --ignore-stdin \
        --delay-levels "1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s" >"$work/address" 2>"$work/embedded.log" &
    cluster_pid=$!
    until [ -s "$work/address" ]; do
        kill -0 "$cluster_pid" 2>/dev/null || { cat "$work/embedded.log"; say "the embedded cluster did not start"; return 1; }
        [ $SECONDS -lt $deadline ] || { say "the embedded cluster named no address within 30 s"; return 1; }
        sleep 0.1
    done
    address=$(cat "$work/address")
}

run_suite() { # VERSION
    local version=$1 classes=$build/$1/suite-classes log=$build/$1/suite.log status=0
    mkdir -p "$classes"
    javac -nowarn -encoding UTF-8 -cp "$build/$version/lib/*" -d "$classes" "$here"/java/*.java 2>&1 | { grep -v '^Note:' || true; }
    work=$(mktemp -d "${TMPDIR:-/tmp}/rocketmq-java.XXXXXX")
    mkdir -p "$work/home/conf"
    for name in logback-test home/conf/logback_tools; do
        logging "$work/$name.xml" ch.qos.logback
    done
    logging "$work/rmq.logback-test.xml" org.apache.rocketmq.logging.ch.qos.logback
    if [ -n "${NAMESRV_ADDR:-}" ]; then address=$NAMESRV_ADDR; else start_cluster || return 1; fi
    say "$version: clients and tools on $address"
    # shellcheck disable=SC2086
    (cd "$work" && timeout --kill-after=30 600 java -Xmx512m -XX:+UseSerialGC "-Duser.home=$work" "-Drocketmq.home.dir=$work/home" \
        -Drocketmq.client.rebalance.waitInterval=1000 -cp "$classes:$work:$build/$version/lib/*" Suite "$address" ${SUITE_CASES:-}) \
        2>"$log.err" | tee "$log" || status=$?
    if [ $status -ne 0 ]; then
        say "$version: last lines of the client's log, $log.err"
        tail -n 30 "$log.err" | cut -c1-300
        [ -s "$work/embedded.log" ] && tail -n 15 "$work/embedded.log" | cut -c1-300
    fi
    stop_cluster
    rm -rf "$work"
    return $status
}

trap 'stop_cluster; [ -z "$work" ] || rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "$build"
cd "$root"
install_tools
versions=("$@")
if [ ${#versions[@]} -eq 0 ]; then
    resolve $newest_5x || { say "no 5.x version resolves"; exit 1; }
    versions=("$resolved")
    resolve $newest_49 || { say "no 4.9.x version resolves"; exit 1; }
    versions+=("$resolved")
fi
say "versions: ${versions[*]}"
cargo build --example embedded
for version in "${versions[@]}"; do
    fetch "$version" && run_suite "$version" || failed=$((failed + 1))
done
[ $failed -eq 0 ] && say "all versions passed" || { say "$failed of ${#versions[@]} versions failed"; exit 1; }
