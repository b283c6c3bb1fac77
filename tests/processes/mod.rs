//! Runs the examples as processes.

use crossbeam::channel::{Receiver, bounded};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// Longer than anything takes here, unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The binary of an example, built if need be: Cargo builds examples for a full `cargo test` only.
pub fn example(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--examples"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo runs").success(), "the examples do not build");
        let test = std::env::current_exe().expect("the path of this test");
        let profile = test.parent().and_then(|deps| deps.parent()).expect("the folder of the build");
        profile.join("examples")
    });
    folder.join(name)
}

/// What a run to the end left.
pub struct Outcome {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Waits for the end of a process whose output is piped, and kills one that does not come to an end.
#[track_caller]
pub fn finish(mut child: Child) -> Outcome {
    let (out, err) = (read(child.stdout.take()), read(child.stderr.take()));
    // The pipes end when the process does.
    let Ok(out) = out.recv_timeout(PATIENCE) else {
        child.kill().ok();
        panic!("still running; standard error: {:?}", err.recv());
    };
    let err = err.recv_timeout(PATIENCE).expect("standard error ends with standard output");
    Outcome { code: child.wait().expect("the exit status").code(), out, err }
}

fn read(from: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, text) = bounded(1);
    thread::spawn(move || {
        let mut all = String::new();
        if let Some(mut from) = from {
            from.read_to_string(&mut all).expect("output is UTF-8");
        }
        sender.send(all).ok();
    });
    text
}
