#!/usr/bin/env bash
# Reads one topic of a real broker with this client and then with the official Java client, in one run, and prints what each
# needed.
#
#   tests/real_broker/measure.sh [VERSION] [COUNT] [BATCH]
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
version=${1:-5.5.0} count=${2:-1000000} batch=${3:-1}
target=${CARGO_TARGET_DIR:-$root/target}
cd "$root"
cargo build --release --example measure

said=$(mktemp "${TMPDIR:-/tmp}/rocketmq-measure.XXXXXX")
"$here/run.sh" --serve "$version" >"$said" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null || true; rm -f "$said"' EXIT
for _ in $(seq 600); do
    grep -q '^peer:' "$said" && break
    kill -0 "$server" 2>/dev/null || { cat "$said"; exit 1; }
    sleep 0.5
done
namesrv=$(sed -n 's/^export NAMESRV_ADDR=//p' "$said")
classpath=$(sed -n "s/^peer: java -cp '\(.*\)' Peer .*/\1/p" "$said")

echo "== $version, $count messages of 256 bytes, batches of $batch"
ours=$("$target/release/examples/measure" consume --namesrv "$namesrv" --count "$count" --batch "$batch")
echo "$ours"
topic=$(printf '%s\n' "$ours" | sed -n 's/^topic *//p')
java -Xms512m -Xmx512m -cp "$classpath" Measure "$namesrv" "$topic" "$count" "$batch"
