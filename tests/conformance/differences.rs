//! What may differ, and why.
//!
//! A line is `VERSIONS | CASE | FIELD | REASON`. `VERSIONS` is `4`, `5` or `*`; the end of a case or field may be `*`.

use super::answer::{Answers, Fields};
use std::cell::Cell;

struct Line {
    text: String,
    versions: String,
    case: String,
    field: String,
    is_used: Cell<bool>,
}

pub struct Differences(Vec<Line>);

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => pattern == text,
    }
}

impl Differences {
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(
            lines
                .map(|line| {
                    let parts: Vec<_> = line.splitn(4, '|').map(str::trim).collect();
                    let [versions, case, field, reason] = parts[..] else { panic!("four parts are wanted: {line}") };
                    assert!(!reason.is_empty(), "a reason is wanted: {line}");
                    Line {
                        text: line.to_owned(),
                        versions: versions.to_owned(),
                        case: case.to_owned(),
                        field: field.to_owned(),
                        is_used: Cell::new(false),
                    }
                })
                .collect(),
        )
    }

    fn allow(&self, version: &str, case: &str, field: &str) -> bool {
        let mut allowed = false;
        for line in &self.0 {
            let is_version = line.versions == "*" || version.starts_with(&*line.versions);
            if is_version && matches(&line.case, case) && matches(&line.field, field) {
                line.is_used.set(true);
                allowed = true;
            }
        }
        allowed
    }

    pub fn unexplained(&self, version: &str, real: &Answers, embedded: &Answers) -> Vec<String> {
        let nothing = Fields::new();
        let mut report = Vec::new();
        for (case, expected) in real.iter() {
            let found = embedded.get(case).unwrap_or(&nothing);
            let mut fields: Vec<_> = expected.keys().chain(found.keys()).collect();
            fields.sort();
            fields.dedup();
            for field in fields {
                let (expected, found) = (expected.get(field), found.get(field));
                if expected != found && !self.allow(version, case, field) {
                    let text = |value: Option<&String>| value.map_or("absent".to_owned(), |value| format!("'{value}'"));
                    report.push(format!(
                        "{version} | {case} | {field}: real {}, embedded {}",
                        text(expected),
                        text(found)
                    ));
                }
            }
        }
        for (case, _) in embedded.iter().filter(|(case, _)| real.get(case).is_none()) {
            report.push(format!("{version} | {case}: no answer of a real broker is recorded"));
        }
        report
    }

    /// Lines that nothing needed, of those that concern the versions compared.
    pub fn unused(&self, versions: &[&str]) -> Vec<String> {
        let concerns = |line: &&Line| match &*line.versions {
            "*" => true,
            major => versions.iter().any(|version| version.starts_with(major)),
        };
        let unused = self.0.iter().filter(concerns).filter(|line| !line.is_used.get());
        unused.map(|line| format!("not needed any more: {}", line.text)).collect()
    }
}
