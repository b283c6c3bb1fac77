//! Command lines of the example mqcat. The Java peer takes the same ones.

use super::Target;
use std::path::PathBuf;
use std::process::Command;

/// The options of one consumer process.
#[derive(Clone, Debug)]
pub struct Consume {
    arguments: Vec<String>,
}

impl Consume {
    /// A member of `group` that reads `topic`, written as `NAME` or `NAME=EXPRESSION`, from its first message.
    pub fn new(target: &dyn Target, group: &str, topic: &str) -> Self {
        let name_servers = target.name_servers();
        let arguments =
            ["consume", "--json", "--namesrv", &name_servers, "--group", group, "--topic", topic, "--from", "first"];
        Self { arguments: arguments.map(str::to_owned).to_vec() }
    }

    pub fn with(mut self, option: &str, value: impl ToString) -> Self {
        self.arguments.extend([option.to_owned(), value.to_string()]);
        self
    }

    pub fn flag(mut self, option: &str) -> Self {
        self.arguments.push(option.to_owned());
        self
    }

    pub fn ours(&self) -> Command {
        self.apply(Command::new(executable()))
    }

    /// The same options behind another program.
    pub fn apply(&self, mut program: Command) -> Command {
        program.args(&self.arguments);
        program
    }
}

/// Many members of groups in one process, which [`super::troupe::Troupe`] commands.
pub fn members() -> Command {
    let mut command = Command::new(executable());
    command.arg("members");
    command
}

/// `target/PROFILE/examples/mqcat`, beside the folder of this test executable.
fn executable() -> PathBuf {
    let mut path = std::env::current_exe().expect("the path of this test is known");
    path.pop();
    path.pop();
    path.extend(["examples", "mqcat"]);
    path.set_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        path.exists(),
        "{} is missing; `cargo test` without a filter and `cargo build --example mqcat` build it",
        path.display()
    );
    path
}
