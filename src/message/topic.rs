//! Names of topics and groups: what is allowed, and the names that RocketMQ derives.
//!
//! Source: `TopicValidator`, `Validators`, `MixAll` of Apache RocketMQ.

use crate::error::{Error, ErrorKind, Result};

/// In front of a group's name: the topic that holds its messages to be consumed again.
pub const RETRY_PREFIX: &str = "%RETRY%";
/// In front of a group's name: the topic that holds its dead letters.
pub const DLQ_PREFIX: &str = "%DLQ%";
/// The template from which brokers create topics on a first send.
pub const AUTO_CREATE_TOPIC: &str = "TBW102";
/// Where messages with a delay level wait.
pub const SCHEDULE_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";
/// Longest topic name, in characters.
pub const MAX_TOPIC_LENGTH: usize = 127;
/// Longest group name, in characters, so that its retry topic is still a legal topic.
pub const MAX_GROUP_LENGTH: usize = 120;

/// The retry topic of a consumer group.
pub fn retry_topic(group: &str) -> String {
    format!("{RETRY_PREFIX}{group}")
}

/// The dead-letter topic of a consumer group.
pub fn dlq_topic(group: &str) -> String {
    format!("{DLQ_PREFIX}{group}")
}

/// Whether the topic is some group's retry topic.
pub fn is_retry(topic: &str) -> bool {
    topic.starts_with(RETRY_PREFIX)
}

/// Topics that brokers refuse to take messages for.
pub const FORBIDDEN_TO_SEND: [&str; 6] = [
    SCHEDULE_TOPIC,
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
];

/// Whether the broker itself owns the topic, so that no user may create or delete it.
pub fn is_system(topic: &str) -> bool {
    topic.starts_with("rmq_sys_")
        || FORBIDDEN_TO_SEND.contains(&topic)
        || [AUTO_CREATE_TOPIC, "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC", "CHECKPOINT_TOPIC"].contains(&topic)
}

/// Checks the name of a topic.
///
/// # Errors
/// [`ErrorKind::Config`] for an empty name, one over [`MAX_TOPIC_LENGTH`], or a character other than ASCII letters,
/// digits, `%`, `|`, `_` and `-`.
pub fn check_topic(topic: &str) -> Result<()> {
    check_name("topic", topic, MAX_TOPIC_LENGTH)
}

/// Checks the name of a producer or consumer group.
///
/// # Errors
/// As [`check_topic`], with [`MAX_GROUP_LENGTH`]; also for the names that RocketMQ keeps for unset groups.
pub fn check_group(group: &str) -> Result<()> {
    check_name("group", group, MAX_GROUP_LENGTH)?;
    if ["DEFAULT_CONSUMER", "DEFAULT_PRODUCER"].contains(&group) {
        return Err(Error::new(
            ErrorKind::Config,
            format!("group '{group}' is the placeholder of unset groups; choose a name"),
        ));
    }
    Ok(())
}

fn check_name(what: &str, name: &str, longest: usize) -> Result<()> {
    let wrong = |reason: String| Err(Error::new(ErrorKind::Config, format!("{what} '{name}' {reason}")));
    if name.trim().is_empty() {
        return wrong("is blank".into());
    }
    if name.len() > longest {
        return wrong(format!("has {} characters; the most is {longest}", name.len()));
    }
    match name.chars().find(|c| !(c.is_ascii_alphanumeric() || "%|_-".contains(*c))) {
        Some(c) => wrong(format!("holds {c:?}; allowed are ASCII letters, digits, '%', '|', '_' and '-'")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_item_the_value_and_the_bound() {
        let text = |result: Result<()>| result.unwrap_err().to_string();
        assert_eq!(text(check_topic(" ")), "topic ' ' is blank");
        assert!(text(check_topic("a b")).contains("holds ' '"));
        assert!(text(check_group(&"g".repeat(121))).contains("the most is 120"));
        assert!(check_topic(&"t".repeat(127)).is_ok());
        assert!(check_group("DEFAULT_CONSUMER").is_err());
    }
}
