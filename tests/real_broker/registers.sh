#!/usr/bin/env bash
# A stock broker of Apache RocketMQ registers at the embedded name server, is found there, and is gone when it has stopped.
#
#   tests/real_broker/registers.sh [VERSION...]
#
# Without a version: the newest 5.x and the newest 4.9.x that resolve.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${CARGO_TARGET_DIR:-$root/target}/real-broker suite="registration"
. "$here/artifacts.sh"
embedded_pid= dir= failed=0

clean_up() {
    [ ! -e "$dir/env" ] || "$here/cluster.sh" "$dir" stop broker || true
    [ -z "$dir" ] || { rm -rf "$dir"; dir=; }
    [ -z "$embedded_pid" ] || { kill "$embedded_pid" 2>/dev/null || true; wait "$embedded_pid" || true; embedded_pid=; }
}

lay_out() { # VERSION PORT: a broker's folder, as cluster.sh wants it
    mkdir -p "$dir/home/conf" "$dir/logging" "$dir/store"
    logging "$dir/logging/rmq.logback-test.xml" org.apache.rocketmq.logging.ch.qos.logback
    for name in logging/logback-test home/conf/logback_broker home/conf/logback_tools; do
        logging "$dir/$name.xml" ch.qos.logback
    done
    printf 'JAVA=java\nCLASSPATH_DIR=%q\n' "$build/$1/lib" >"$dir/env"
    cat >"$dir/broker.conf" <<END
brokerClusterName=DefaultCluster
brokerName=stock
brokerId=0
brokerIP1=127.0.0.1
brokerIP2=127.0.0.1
listenPort=$2
haListenPort=$(($2 + 1))
namesrvAddr=$address
storePathRootDir=$dir/store
storePathCommitLog=$dir/store/commitlog
mappedFileSizeCommitLog=67108864
mappedFileSizeConsumeQueue=600000
maxIndexNum=200000
maxHashSlotNum=50000
diskMaxUsedSpaceRatio=95
END
}

route() { # VERSION: what the administrator's tool says of a topic that every broker has
    java "-Duser.home=$dir" "-Drocketmq.home.dir=$dir/home" -cp "$dir/logging:$build/$1/lib/*" \
        org.apache.rocketmq.tools.command.MQAdminStartup topicRoute -t SELF_TEST_TOPIC -n "$address" 2>/dev/null || true
}

listed() { # VERSION
    local route
    route=$(route "$1")
    [[ $route == *broker-a* && $route == *stock* ]]
}

wait_for() { # WHAT COMMAND...
    local what=$1 deadline=$((SECONDS + 90))
    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || { say "not within 90 s: $what"; return 1; }
        sleep 0.2
    done
}

gone() { # VERSION
    local route
    route=$(route "$1")
    [[ $route == *broker-a* && $route != *stock* ]]
}

check() { # VERSION
    local version=$1
    dir=$(mktemp -d "${TMPDIR:-/tmp}/rocketmq-register.XXXXXX")
    "${CARGO_TARGET_DIR:-$root/target}/debug/examples/embedded" --ignore-stdin >"$dir/address" 2>"$dir/embedded.log" &
    embedded_pid=$!
    wait_for "the embedded cluster's address" test -s "$dir/address" || return 1
    address=$(cat "$dir/address")
    lay_out "$version" $((20000 + RANDOM % 20000))
    "$here/cluster.sh" "$dir" start broker || return 1
    wait_for "$version is listed beside the embedded broker" listed "$version" || return 1
    "$here/cluster.sh" "$dir" stop broker || return 1
    wait_for "$version is gone after its stop" gone "$version" || return 1
    say "$version registered, was found, and left"
}

trap clean_up EXIT
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
cargo build --example embedded
for version in "${versions[@]}"; do
    fetch "$version" && check "$version" || failed=$((failed + 1))
    clean_up
done
[ $failed -eq 0 ] || { say "$failed of ${#versions[@]} versions failed"; exit 1; }
