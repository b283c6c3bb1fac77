//! Holds the one-way arrows between the layers of `DESIGN.md`, by reading the `use crate::` paths of `src/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A part of `src/`, and the parts that it may use. Lowest first; each may use itself.
const ARROWS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("sync", &[]),
    ("time", &["sync"]),
    ("base", &["error", "sync", "time"]),
    ("thread", &["error", "sync", "time", "base"]),
    ("message", &["error", "time", "base"]),
    ("protocol", &["error", "base", "message"]),
    ("config", &["error", "base", "protocol", "time"]),
    ("remoting", &["error", "sync", "time", "base", "thread", "protocol"]),
    ("api", &["error", "time", "message", "protocol", "config", "remoting"]),
    ("instance", &["error", "sync", "time", "base", "thread", "message", "protocol", "config", "remoting", "api"]),
    ("embedded", &["error", "sync", "time", "base", "thread", "message", "protocol", "remoting"]),
    ("producer", &["error", "sync", "time", "base", "message", "protocol", "config", "api", "instance"]),
    ("consumer", &["error", "sync", "time", "base", "thread", "message", "protocol", "config", "api", "instance"]),
];

/// The same inside `consumer/`.
const CONSUMER_ARROWS: &[(&str, &[&str])] = &[
    ("listener", &[]),
    ("listener_orderly", &[]),
    ("selector", &[]),
    ("message_model", &[]),
    ("event", &[]),
    ("process_queue", &[]),
    ("suspension", &[]),
    ("allocate", &[]),
    ("order", &[]),
    ("held", &["process_queue", "suspension", "order"]),
    ("queue_state", &["held", "order"]),
    ("health", &["event", "queue_state"]),
    ("offset", &["held"]),
    ("pull", &["event", "held", "offset"]),
    ("rebalance", &["allocate", "held", "offset"]),
    ("report", &[]),
    (
        "member",
        &[
            "selector",
            "message_model",
            "event",
            "process_queue",
            "allocate",
            "held",
            "queue_state",
            "health",
            "offset",
            "pull",
            "rebalance",
            "report",
        ],
    ),
    (
        "lite_pull",
        &[
            "selector",
            "message_model",
            "process_queue",
            "held",
            "queue_state",
            "health",
            "rebalance",
            "report",
            "member",
        ],
    ),
    (
        "push",
        &[
            "listener",
            "listener_orderly",
            "selector",
            "message_model",
            "event",
            "process_queue",
            "suspension",
            "order",
            "held",
            "queue_state",
            "health",
            "rebalance",
            "report",
            "member",
        ],
    ),
    ("simulation_tests", &["process_queue", "allocate", "held", "offset", "pull", "rebalance", "push"]),
];

/// Files that may be longer than [`LONGEST`] lines before their tests, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[];
const LONGEST: usize = 600;

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, out: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                out.push((path, text));
            }
        }
    }
    let mut out = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut out);
    assert!(out.len() > 20, "the sources were found");
    out
}

/// The part a file belongs to: the first step of its path below `root`.
fn part(path: &Path, root: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(root);
    let first = path.strip_prefix(root).ok()?.components().next()?;
    Some(first.as_os_str().to_str()?.trim_end_matches(".rs").to_owned())
}

/// Lines of code before the tests at the bottom; comments do not count as uses.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"))
        .map(str::trim_start)
        .filter(|line| !line.starts_with("//"))
}

/// Every name that stands right behind `prefix`, also inside braces: `crate::{a, b::C}`.
fn used(text: &str, prefix: &str) -> BTreeSet<String> {
    let joined: String = code(text).collect::<Vec<_>>().join(" ");
    let mut names = BTreeSet::new();
    for (at, _) in joined.match_indices(prefix) {
        let rest = &joined[at + prefix.len()..];
        let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        match rest.strip_prefix('{') {
            None => {
                names.insert(name(rest));
            }
            Some(list) => {
                let mut depth = 1;
                let mut start = true;
                for (at, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        ',' if depth == 1 => start = true,
                        c if start && !c.is_whitespace() => {
                            names.insert(name(&list[at..]));
                            start = false;
                        }
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
        }
    }
    names
}

fn check(root: &str, prefix: &str, arrows: &[(&str, &[&str])]) {
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        arrows.iter().map(|(part, uses)| (*part, uses.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let Some(from) = part(&path, root).filter(|part| part != "mod" && part != "lib") else { continue };
        let Some(uses) = allowed.get(&*from) else {
            wrong.push(format!("{}: '{from}' is not in the table", path.display()));
            continue;
        };
        for to in used(&text, prefix) {
            // A name in upper case is an item that the crate root re-exports.
            let is_part = to.chars().next().is_some_and(char::is_lowercase);
            if is_part && to != from && !uses.contains(&*to) {
                wrong.push(format!("{}: {from} -> {to}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that are not in the table:\n{}", wrong.join("\n"));
}

#[test]
fn every_arrow_between_layers_is_in_the_table() {
    check("", "crate::", ARROWS);
}

#[test]
fn every_arrow_inside_the_consumer_is_in_the_table() {
    check("consumer", "crate::consumer::", CONSUMER_ARROWS);
    check("consumer", "super::super::", CONSUMER_ARROWS);
}

#[test]
fn no_table_has_a_circle() {
    for arrows in [ARROWS, CONSUMER_ARROWS] {
        // Each part may only use those that stand before it.
        let mut before = BTreeSet::new();
        for (part, uses) in arrows {
            for to in *uses {
                assert!(before.contains(to), "{part} uses {to}, which stands behind it");
            }
            before.insert(*part);
        }
    }
}

#[test]
fn no_file_grows_past_reading_in_one_go() {
    for (path, text) in sources() {
        let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count();
        let is_excused = LONG_FILES.iter().any(|(file, _)| path.ends_with(file));
        let is_test = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
        assert!(lines <= LONGEST || is_excused || is_test, "{} has {lines} lines", path.display());
    }
}

#[test]
fn sockets_are_polled_in_one_layer_only() {
    for (path, text) in sources() {
        let uses_mio = code(&text).any(|line| line.starts_with("use mio") || line.contains("mio::"));
        assert!(!uses_mio || part(&path, "").as_deref() == Some("remoting"), "{} uses mio", path.display());
    }
}

#[test]
fn locks_come_from_the_ranked_ones() {
    for (path, text) in sources() {
        let is_owner = part(&path, "").as_deref() == Some("sync");
        let bare = code(&text).find(|line| {
            ["sync::Mutex", "sync::RwLock", "sync::Condvar"].iter().any(|lock| line.contains(&format!("std::{lock}")))
        });
        assert!(is_owner || bare.is_none(), "{}: {}", path.display(), bare.unwrap_or_default());
    }
}
