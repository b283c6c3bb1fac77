# Java, Maven and the jars of Apache RocketMQ, for the suites that need them. Sourced; wants `build`, a folder, and `suite`, the
# name in front of what it says.

# Newest first. A release may lack an artifact in the repository (so far 5.5.1: the client and others, 4.9.8: the broker).
newest_5x="5.5.2 5.5.1 5.5.0 5.4.0 5.3.3"
newest_49="4.9.9 4.9.8 4.9.7 4.9.6"
artifacts="rocketmq-namesrv rocketmq-broker rocketmq-client rocketmq-tools"

say() {
    echo "$suite: $*"
}

install_tools() {
    local missing=()
    { command -v java && command -v javac; } >/dev/null || missing+=(default-jdk-headless)
    command -v mvn >/dev/null || missing+=(maven)
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]}"
    local as_root=
    [ "$(id -u)" -eq 0 ] || as_root=sudo
    { $as_root apt-get update && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y --no-install-recommends "${missing[@]}"; } \
        >"$build/install.log" 2>&1 || { say "could not install ${missing[*]}, see $build/install.log"; return 1; }
}

# The jars of a version with all they need, in $build/VERSION/lib; fails when an artifact does not resolve.
fetch() {
    local version=$1 target=$build/$1
    [ -e "$target/complete" ] && return 0
    rm -rf "$target"
    mkdir -p "$target"
    {
        echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        echo '<groupId>suite</groupId><artifactId>suite</artifactId><version>1</version><packaging>pom</packaging><dependencies>'
        for artifact in $artifacts; do
            echo "<dependency><groupId>org.apache.rocketmq</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
        done
        echo '</dependencies></project>'
    } >"$target/pom.xml"
    mvn -B -q -f "$target/pom.xml" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$target/lib" \
        >"$target/maven.log" 2>&1 || return 1
    touch "$target/complete"
}

# Sets `resolved` to the first version of the list that resolves.
resolve() {
    for resolved in "$@"; do
        fetch "$resolved" && return 0
        say "$resolved does not resolve completely, trying the next older one"
    done
    return 1
}

logging() { # FILE PACKAGE: warnings and worse go to standard error, nothing to files
    cat >"$1" <<END
<configuration>
  <statusListener class="$2.core.status.NopStatusListener"/>
  <appender name="ERR" class="$2.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{20} %msg%n</pattern></encoder>
  </appender>
  <logger name="RocketmqTransaction" level="ERROR"/>
  <root level="WARN"><appender-ref ref="ERR"/></root>
</configuration>
END
}
