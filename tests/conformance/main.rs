//! One suite of requests, valid, borderline and wrong, for a real name server and broker and for the embedded ones; their
//! answers are compared field by field.
//!
//! Answers of real brokers are recorded in `answers/VERSION.txt`, so that `cargo test` needs none. With
//! `ROCKETMQ_TEST_NAMESRV` and `ROCKETMQ_TEST_BROKER` set, as `tests/real_broker/run.sh` does, a live one is asked instead;
//! `CONFORMANCE_RECORD=FILE` then also writes its answers down. `differences.txt` has what differs and why: a difference
//! that is not in it fails, as does a line of it that the recorded answers do not need.

mod answer;
mod cases;
mod differences;
mod peer;

use answer::Answers;
use differences::Differences;
use rocketmq_sync::EmbeddedCluster;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

fn ask_embedded() -> Answers {
    let cluster = EmbeddedCluster::builder().brokers(1).start().unwrap();
    let name_server = cluster.name_servers();
    let broker = peer::broker_of(&name_server);
    cases::run(&name_server, &broker)
}

#[test]
fn the_embedded_cluster_answers_as_real_ones_do_but_for_the_differences_listed() {
    let embedded = ask_embedded();
    assert!(embedded.cases() > 60, "the suite was run");
    let mut real = Vec::new();
    let mut is_live = false;
    if let (Ok(name_server), Ok(broker)) = (env::var("ROCKETMQ_TEST_NAMESRV"), env::var("ROCKETMQ_TEST_BROKER")) {
        is_live = true;
        let version = env::var("ROCKETMQ_TEST_VERSION").unwrap();
        let answers = cases::run(&name_server, &broker);
        if let Ok(file) = env::var("CONFORMANCE_RECORD") {
            fs::write(file, answers.to_string()).unwrap();
        }
        real.push((version, answers));
    } else {
        for entry in fs::read_dir(folder().join("answers")).unwrap() {
            let path = entry.unwrap().path();
            let version = path.file_stem().unwrap().to_str().unwrap().to_owned();
            real.push((version, Answers::parse(&fs::read_to_string(path).unwrap())));
        }
        assert!(real.len() >= 2, "answers of both major versions are recorded");
    }
    let differences = Differences::parse(&fs::read_to_string(folder().join("differences.txt")).unwrap());
    let mut report = Vec::new();
    for (version, answers) in &real {
        report.extend(differences.unexplained(version, answers, &embedded));
    }
    // Some differences depend on what a live broker has been through.
    if !is_live {
        let versions: Vec<_> = real.iter().map(|(version, _)| version.as_str()).collect();
        report.extend(differences.unused(&versions));
    }
    assert!(report.is_empty(), "{} lines:\n{}", report.len(), report.join("\n"));
}
