//! The cluster that run.sh has started, as the environment describes it.

use crate::java_peer::{JavaService, java};
use crate::support::Target;
use crate::support::event::Sent;
use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub struct RealTarget {
    name_servers: String,
    broker: String,
    second_broker: String,
    /// The folder of the cluster, for cluster.sh.
    cluster: String,
    class_path: String,
}

impl RealTarget {
    /// `None`, said on standard error, where no cluster was started for these tests.
    pub fn from_environment() -> Option<Self> {
        let Ok(name_servers) = env::var("ROCKETMQ_TEST_NAMESRV") else {
            eprintln!("skipped: ROCKETMQ_TEST_NAMESRV names no cluster; tests/real_broker/run.sh starts one");
            return None;
        };
        let need = |name: &str| env::var(name).unwrap_or_else(|error| panic!("{name}: {error}; run.sh sets it"));
        let target = Self {
            name_servers,
            broker: need("ROCKETMQ_TEST_BROKER"),
            second_broker: need("ROCKETMQ_TEST_SECOND_BROKER"),
            cluster: need("ROCKETMQ_TEST_CLUSTER"),
            class_path: need("ROCKETMQ_TEST_CLASSPATH"),
        };
        // A scenario that failed in the middle may have left a server stopped.
        target.start_name_server();
        target.start_broker();
        target.stop_second_broker();
        Some(target)
    }

    /// A second broker, with another name and in another machine room, for the scenarios that need one.
    pub fn start_second_broker(&self) {
        self.control("start", "broker2");
    }

    pub fn stop_second_broker(&self) {
        self.control("stop", "broker2");
    }

    /// As [`Target::create_topic`], on both brokers.
    pub fn create_topic_on_both(&self, name: &str, queues: u32) {
        for broker in [&self.broker, &self.second_broker] {
            self.service().create_topic(&format!("{name} {queues} {broker}"));
        }
    }

    /// Many members of groups in one process of the Java peer, as `mqcat members`.
    pub fn java_members(&self) -> Command {
        let mut command = self.java();
        command.arg("members");
        command
    }

    /// As run.sh was told to bring it.
    pub fn version() -> String {
        env::var("ROCKETMQ_TEST_VERSION").unwrap_or_else(|error| panic!("ROCKETMQ_TEST_VERSION: {error}"))
    }

    /// The Java peer as a program that takes the options of mqcat.
    pub fn java(&self) -> Command {
        java(&self.class_path)
    }

    /// Runs one of the official admin tools.
    pub fn admin(&self, words: &[&str]) -> String {
        let output = Command::new("java")
            // Some write files where they run.
            .current_dir(&self.cluster)
            // The tools of 4.9 read the configuration of their log there.
            .env("ROCKETMQ_HOME", Path::new(&self.cluster).join("home"))
            .args([
                "-XX:TieredStopAtLevel=1",
                "-cp",
                &self.class_path,
                "org.apache.rocketmq.tools.command.MQAdminStartup",
            ])
            .args(words)
            .args(["-n", &self.name_servers])
            .output()
            .expect("java can be run");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words:?}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// One process for all scenarios, since a JVM takes its time to start.
    fn service(&self) -> MutexGuard<'static, JavaService> {
        static SERVICE: OnceLock<Mutex<JavaService>> = OnceLock::new();
        let log = Path::new(&self.cluster).join("java.log");
        let start = || Mutex::new(JavaService::start(&self.class_path, &self.name_servers, &self.broker, &log));
        // A scenario that failed while it held the lock failed on an answer; the next command is answered anew.
        SERVICE.get_or_init(start).lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a Java lite pull consumer of the group gets; see [`JavaService::lite_pull`].
    pub fn java_lite_pull(&self, group: &str, topic: &str, count: usize) -> Vec<(i32, i64)> {
        self.service().lite_pull(group, topic, count)
    }

    fn control(&self, action: &str, what: &str) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real_broker/cluster.sh");
        let status = Command::new(script).args([&self.cluster, action, what]).status().expect("cluster.sh can be run");
        assert!(status.success(), "cluster.sh could not {action} the {what}: {status}");
    }
}

impl Target for RealTarget {
    fn name_servers(&self) -> String {
        self.name_servers.clone()
    }

    fn broker_address(&self) -> String {
        self.broker.clone()
    }

    fn create_topic(&self, name: &str, queues: u32) {
        self.service().create_topic(&format!("{name} {queues}"));
    }

    fn stop_broker(&self) {
        self.control("stop", "broker");
    }

    fn start_broker(&self) {
        self.control("start", "broker");
    }

    fn stop_name_server(&self) {
        self.control("stop", "namesrv");
    }

    fn start_name_server(&self) {
        self.control("start", "namesrv");
    }

    fn volume(&self) -> usize {
        20_000
    }

    fn produce_elsewhere(&self, topic: &str, count: usize) -> Vec<Sent> {
        self.service().produce(topic, count)
    }

    fn stored_offsets(&self, group: &str, topic: &str) -> Option<BTreeMap<String, (i64, i64)>> {
        Some(self.service().committed(group, topic))
    }
}
