#!/usr/bin/env bash
# The scenarios against real Apache RocketMQ, beside the official Java client.
#
#   tests/real_broker/run.sh [VERSION...]          runs tests/real_broker.rs and tests/conformance against each version
#   tests/real_broker/run.sh --serve [VERSION]     starts one cluster, prints how to reach it, serves until interrupted
#   tests/real_broker/run.sh --churn [VERSION...]  the scenario of members that come and go, alone and in full: 50 changes
#   TEST_FILTER=name tests/real_broker/run.sh      runs the scenarios whose name contains it
#
# Without a version: the newest 5.x and the newest 4.9.x of which every artifact resolves. Java and Maven are installed when
# they are missing. Everything runs on the loopback address with its data in a temporary folder; jars are kept under target/.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${CARGO_TARGET_DIR:-$root/target}/real-broker suite="real broker"
. "$here/artifacts.sh"
passed=0 failed=0 cluster= sleeper=

compile_peer() {
    local target=$build/$1
    mkdir -p "$target/classes"
    javac -nowarn -encoding UTF-8 -cp "$target/lib/*" -d "$target/classes" "$here"/java/*.java
}

lay_out() { # VERSION: a folder with the configuration of one cluster
    local version=$1 lib=$build/$1/lib ports
    cluster=$(mktemp -d "${TMPDIR:-/tmp}/rocketmq-$version.XXXXXX")
    mkdir -p "$cluster/home/conf" "$cluster/logging" "$cluster/store-broker" "$cluster/store-broker2"
    logging "$cluster/logging/rmq.logback-test.xml" org.apache.rocketmq.logging.ch.qos.logback
    for name in logging/logback-test home/conf/logback_namesrv home/conf/logback_broker home/conf/logback_tools; do
        logging "$cluster/$name.xml" ch.qos.logback
    done
    ports=$(java -cp "$build/$version/classes" Peer ports) || return 1
    read -r namesrv_port broker_port second_port <<<"$ports"
    printf 'JAVA=java\nCLASSPATH_DIR=%q\n' "$lib" >"$cluster/env"
    cat >"$cluster/namesrv.properties" <<END
listenPort=$namesrv_port
kvConfigPath=$cluster/kvConfig.json
END
    # Names that put each broker into a machine room: by `room@broker` for MACHINE_ROOM, by what is before the dash for the
    # nearby strategy of the scenarios. The second broker runs only in scenarios that start it.
    broker_configuration broker east-1@broker-a "$broker_port"
    broker_configuration broker2 west-1@broker-b "$second_port"
}

broker_configuration() { # FILE NAME PORT
    # Short delays let retries come in seconds. The wide limits on waiting keep a busy test machine from refusing messages.
    cat >"$cluster/$1.conf" <<END
brokerClusterName=DefaultCluster
brokerName=$2
brokerId=0
brokerIP1=127.0.0.1
brokerIP2=127.0.0.1
listenPort=$3
haListenPort=$(($3 + 1))
namesrvAddr=127.0.0.1:$namesrv_port
storePathRootDir=$cluster/store-$1
storePathCommitLog=$cluster/store-$1/commitlog
mappedFileSizeCommitLog=67108864
mappedFileSizeConsumeQueue=600000
maxIndexNum=200000
maxHashSlotNum=50000
diskMaxUsedSpaceRatio=95
messageDelayLevel=1s 1s 1s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s
autoCreateTopicEnable=true
autoCreateSubscriptionGroup=true
flushConsumerOffsetInterval=1000
registerNameServerPeriod=10000
waitTimeMillsInSendQueue=10000
osPageCacheBusyTimeOutMills=10000
enablePropertyFilter=true
END
}

bring_up() { # VERSION
    for attempt in 1 2 3; do
        if lay_out "$1" && "$here/cluster.sh" "$cluster" start namesrv && "$here/cluster.sh" "$cluster" start broker; then
            say "$1: name server 127.0.0.1:$namesrv_port, broker 127.0.0.1:$broker_port"
            return 0
        fi
        say "$1: start $attempt failed"
        take_down "$1"
    done
    return 1
}

take_down() { # VERSION: ends what runs, keeps the logs
    [ -n "$cluster" ] || return 0
    "$here/cluster.sh" "$cluster" stop broker2 || true
    "$here/cluster.sh" "$cluster" stop broker || true
    "$here/cluster.sh" "$cluster" stop namesrv || true
    mkdir -p "$build/$1/logs"
    cp "$cluster"/*.log "$build/$1/logs/" 2>/dev/null || true
    rm -rf "$cluster"
    cluster=
}

run_tests() { # VERSION
    local version=$1 log=$build/$1/test.log status=0 counts
    ROCKETMQ_TEST_NAMESRV=127.0.0.1:$namesrv_port ROCKETMQ_TEST_BROKER=127.0.0.1:$broker_port \
        ROCKETMQ_TEST_SECOND_BROKER=127.0.0.1:$second_port \
        ROCKETMQ_TEST_CLUSTER=$cluster ROCKETMQ_TEST_VERSION=$version \
        ROCKETMQ_TEST_CLASSPATH="$build/$version/classes:$cluster/logging:$build/$version/lib/*" \
        timeout --kill-after=30 1200 cargo test --no-fail-fast --test conformance --test real_broker -- --test-threads=1 ${TEST_FILTER:-} 2>&1 | tee "$log" || status=$?
    # "test result: ok. 9 passed; 0 failed; ..." of both targets; fewer lines are a run that broke off, a failure of its own.
    counts=$(sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed;.*/\1 \2/p' "$log" |
        awk '{ passed += $1; failed += $2 } END { print passed + 0, failed + (NR < 2) }')
    passed=$((passed + ${counts% *})) failed=$((failed + ${counts#* }))
    if [ $status -ne 0 ] && [ "${counts#* }" -eq 0 ]; then
        failed=$((failed + 1))
    fi
    if [ $status -ne 0 ]; then
        say "$version: last lines of the broker's log"
        tail -n 15 "$cluster/broker.log" | cut -c1-300
    fi
}

version=
trap '[ -z "$sleeper" ] || kill "$sleeper" 2>/dev/null; take_down "$version"' EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "$build"
cd "$root"
install_tools

serve=
if [ "${1:-}" = --serve ]; then
    serve=yes
    shift
fi
if [ "${1:-}" = --churn ]; then
    export ROCKETMQ_TEST_CHURN=yes TEST_FILTER="twenty_members processes_are_killed"
    shift
fi
versions=("$@")
if [ ${#versions[@]} -eq 0 ]; then
    resolve $newest_5x || { say "no 5.x version resolves"; exit 1; }
    versions=("$resolved")
    if [ -z "$serve" ]; then
        resolve $newest_49 || { say "no 4.9.x version resolves"; exit 1; }
        versions+=("$resolved")
    fi
fi
say "versions: ${versions[*]}"

if [ -n "$serve" ]; then
    version=${versions[0]}
    fetch "$version" && compile_peer "$version" && bring_up "$version"
    echo "export NAMESRV_ADDR=127.0.0.1:$namesrv_port"
    echo "peer: java -cp '$build/$version/classes:$cluster/logging:$build/$version/lib/*' Peer ..."
    # Until a signal; `wait` lets the traps run at once, which a sleeping child alone would not.
    sleep infinity &
    sleeper=$!
    wait $sleeper || true
    exit 0
fi

# The suite drives the example as separate processes.
cargo build --example mqcat
cargo test --test conformance --test real_broker --no-run
for version in "${versions[@]}"; do
    if fetch "$version" && compile_peer "$version" && bring_up "$version"; then
        run_tests "$version"
    else
        say "$version: the cluster could not be started, see $build/$version"
        failed=$((failed + 1))
    fi
    take_down "$version"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
