//! Drives `mqcat assign` as people do: by its options, what it prints, the picture it draws, and its exit codes.

use processes::{Outcome, example, finish};
use std::process::{Command, Stdio};

mod processes;

#[track_caller]
fn assign(args: &[&str]) -> Outcome {
    let mut command = Command::new(example("mqcat"));
    command.arg("assign").args(args).env_remove("RUST_LOG").stdin(Stdio::null());
    finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mqcat starts"))
}

#[track_caller]
fn printed(args: &[&str]) -> String {
    let outcome = assign(args);
    assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""), "{args:?}");
    outcome.out
}

#[test]
fn prints_who_gets_what_and_what_moves() {
    let out = printed(&["--queues", "T:b:5,T:a:3", "--members", "x,y,z", "--join", "w"]);
    let expected = "\
AVG: topic T, 8 queues, 3 members
  columns: a 0-2, b 0-4
  x     3  ### .....
  y     3  ... ###..
  z     2  ... ...##
  w  joins:     3 of 8 queues move, 2 of them to it
  x  leaves:    5 of 8 queues move, 3 of them its own
  y  leaves:    3 of 8 queues move, 3 of them its own
  z  leaves:    3 of 8 queues move, 2 of them its own
  when one leaves, 3.7 queues move on average, 2.7 of them its own
";
    assert_eq!(out, expected);
}

#[test]
fn shares_topics_out_one_by_one_with_every_strategy_that_fits() {
    let args = ["--queues", "S:r1@a:4,T:r1@a:2,T:r2@b:2", "--members", "3", "--strategy", "all", "--rooms", "r1"];
    let out = printed(&args);
    let titles: Vec<&str> = out.lines().filter(|line| line.contains(": topic ")).collect();
    assert_eq!(titles.len(), 10, "{out}");
    assert!(titles.contains(&"BALANCED_STICKY: topic S, 4 queues, 3 members"), "{out}");
    assert!(out.contains("read by nobody: 2 queues"), "{out}");
    let nearby = printed(&["--queues", "T:a-1:4", "--members", "a-x,b-y", "--strategy", "all", "--join", "a-z"]);
    assert!(nearby.contains("MACHINE_ROOM_NEARBY-AVG: topic T, 4 queues, 2 members"), "{nearby}");
}

#[test]
fn gives_lists_where_a_grid_would_be_too_wide() {
    let out = printed(&["--queues", "T:a:200,T:b:2", "--members", "x,y", "--strategy", "AVG_BY_CIRCLE"]);
    assert!(out.contains("  x                   "), "{out}");
    assert!(
        out.lines().nth(1).is_some_and(|line| line.contains(" 101  a 0 2 4 6 ") && line.ends_with(" 198, b 0")),
        "{out}"
    );
}

#[test]
fn draws_a_row_for_each_situation_and_a_cell_for_each_queue() {
    let file = std::env::temp_dir().join(format!("mqcat-assign-{}.svg", std::process::id()));
    let path = file.to_str().expect("a path in UTF-8");
    printed(&["--queues", "<T&>:b:6", "--members", "3", "--strategy", "BALANCED_STICKY", "--svg", path]);
    let picture = std::fs::read_to_string(&file).expect("the picture was written");
    std::fs::remove_file(&file).expect("the picture can be removed");
    // Now, one joins, each of three leaves; and the background.
    assert_eq!(picture.matches("<rect ").count(), 5 * 6 + 1);
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n") && picture.contains("topic &lt;T&amp;&gt;"));
    let moved: usize = picture
        .lines()
        .filter_map(|line| line.split_once(" move, ")?.0.rsplit_once('>')?.1.parse::<usize>().ok())
        .sum();
    assert!(moved >= 6);
    assert_eq!(picture.matches("<circle ").count(), moved, "a dot for each queue that moves");
}

#[test]
fn a_wrong_command_line_ends_with_code_2_and_one_line_that_names_the_option() {
    let wrong: [(&[&str], &str); 12] = [
        (&["--members", "2"], "--queues: required"),
        (&["--queues", "2"], "--members: required"),
        (&["--queues", "0", "--members", "2"], "--queues: \"0\""),
        (&["--queues", "T:b", "--members", "2"], "--queues: \"T:b\""),
        (&["--queues", "T:b:1,T:b:2", "--members", "2"], "--queues: T:b is named twice"),
        (&["--queues", "2", "--members", "9999999"], "--members: 9999999"),
        (&["--queues", "2", "--members", "a,,b"], "--members: a client id cannot be empty"),
        (&["--queues", "2", "--members", "a,b,a"], "--members: a is named twice"),
        (&["--queues", "2", "--members", "a,b", "--join", "b"], "--join: b is a member already"),
        (&["--queues", "2", "--members", "2", "--strategy", "FAIR"], "--strategy: \"FAIR\""),
        (&["--queues", "2", "--members", "2", "--strategy", "MACHINE_ROOM"], "--rooms: required"),
        (&["--queues", "2", "--members", "2", "--quick"], "--quick"),
    ];
    for (args, gist) in wrong {
        let outcome = assign(args);
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.err);
        assert!(outcome.err.contains(gist) && outcome.err.lines().count() == 1, "{args:?}: {}", outcome.err);
        assert_eq!(outcome.out, "", "{args:?}");
    }
    let outcome = assign(&["--queues", "2", "--members", "2", "--svg", "/nowhere/x.svg"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.err.contains("--svg /nowhere/x.svg"), "{}", outcome.err);
    assert!(assign(&["--help"]).out.contains("--svg FILE"));
}
