//! What a consumer asks for in one topic.

use crate::base::java_hash::string_hash;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::body::json_body;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The topic and filter of one subscription. It goes into heartbeats and, on demand, into pull requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[doc(alias = "org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData")]
pub struct SubscriptionData {
    /// Legacy server-side class filters; always false here.
    pub class_filter_mode: bool,
    /// Java's string hash of each tag. Brokers compare just these, so messages of a colliding tag pass them.
    pub code_set: BTreeSet<i32>,
    /// `TAG` or `SQL92`.
    pub expression_type: String,
    /// The expression as given; `*` for everything.
    pub sub_string: String,
    /// When the subscription was made or last changed, in milliseconds. Brokers take only newer ones over.
    pub sub_version: i64,
    /// The tags; empty for `*` and for SQL.
    pub tags_set: BTreeSet<String>,
    /// The topic.
    pub topic: String,
}

impl SubscriptionData {
    /// The expression that stands for every message.
    pub const ALL: &'static str = "*";
    /// The expression type of tags.
    pub const TAG: &'static str = "TAG";
    /// The expression type of SQL-92 conditions over properties.
    pub const SQL92: &'static str = "SQL92";

    /// Parses a tag expression: `*` or nothing for all messages, else tags with `||` between them. Blanks around a tag
    /// are dropped, and so are empty tags; an expression of blanks alone is legal, and matches no message.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an expression of bars alone.
    ///
    /// ```
    /// use rocketmq_sync::protocol::SubscriptionData;
    /// let subscription = SubscriptionData::tag_expression("orders", "TagA || TagB", 1)?;
    /// assert!(subscription.matches_tag(Some("TagA")) && !subscription.matches_tag(Some("taga")));
    /// # Ok::<(), rocketmq_sync::Error>(())
    /// ```
    pub fn tag_expression(topic: &str, expression: &str, sub_version: i64) -> Result<Self> {
        let mut subscription = Self { topic: topic.into(), sub_version, ..Self::default() };
        if expression.is_empty() || expression == Self::ALL {
            return Ok(subscription);
        }
        if expression.split("||").all(str::is_empty) {
            let message =
                format!("tag expression '{expression}' for topic {topic} has no tag; use '*' for all messages");
            return Err(Error::new(ErrorKind::Config, message));
        }
        subscription.sub_string = expression.into();
        // Java trims what is up to U+0020.
        for tag in expression.split("||").map(|tag| tag.trim_matches(|c| c <= ' ')).filter(|tag| !tag.is_empty()) {
            subscription.code_set.insert(string_hash(tag));
            subscription.tags_set.insert(tag.into());
        }
        Ok(subscription)
    }

    /// A condition in SQL-92 over properties. Whether it is legal only brokers know.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an empty one.
    pub fn sql92(topic: &str, expression: &str, sub_version: i64) -> Result<Self> {
        if expression.trim().is_empty() {
            return Err(Error::new(ErrorKind::Config, format!("the SQL92 expression for topic '{topic}' is empty")));
        }
        Ok(Self {
            topic: topic.into(),
            sub_string: expression.into(),
            expression_type: Self::SQL92.into(),
            sub_version,
            ..Self::default()
        })
    }

    /// Whether a message with this tag belongs to the subscription. Messages that brokers sent for it must be checked:
    /// brokers compare hashes, which collide. Only tags are: with `*` and SQL everything that came is wanted.
    pub fn matches_tag(&self, tag: Option<&str>) -> bool {
        self.class_filter_mode || self.tags_set.is_empty() || tag.is_some_and(|tag| self.tags_set.contains(tag))
    }
}

impl Default for SubscriptionData {
    /// Every message of a topic without a name. Members that a peer leaves out are read as these.
    fn default() -> Self {
        Self {
            class_filter_mode: false,
            code_set: BTreeSet::new(),
            expression_type: Self::TAG.into(),
            sub_string: Self::ALL.into(),
            sub_version: 0,
            tags_set: BTreeSet::new(),
            topic: String::new(),
        }
    }
}

json_body!(SubscriptionData);

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(expression: &str) -> Vec<String> {
        SubscriptionData::tag_expression("T", expression, 0).unwrap().tags_set.into_iter().collect()
    }

    #[test]
    fn splits_at_double_bars_trims_and_drops_blanks() {
        assert_eq!(tags("A || B  ||C"), ["A", "B", "C"]);
        assert_eq!(tags("A"), ["A"]);
        assert_eq!(tags("||A||||A ||"), ["A"]);
        assert_eq!(tags("a|b"), ["a|b"]);
        assert!(tags(" || ").is_empty() && tags("").is_empty() && tags("*").is_empty());
        for expression in ["||", "||||"] {
            let error = SubscriptionData::tag_expression("T", expression, 0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
        }
    }

    #[test]
    fn keeps_the_expression_as_given_and_hashes_as_java_does() {
        let subscription = SubscriptionData::tag_expression("T", "TagA || 标签||😀", 7).unwrap();
        assert_eq!(subscription.sub_string, "TagA || 标签||😀");
        assert_eq!(subscription.code_set, BTreeSet::from([2598919, 857175, 1772899]));
        assert_eq!((subscription.sub_version, &*subscription.expression_type), (7, "TAG"));
        assert_eq!(SubscriptionData::tag_expression("T", "", 0).unwrap().sub_string, "*");
    }

    #[test]
    fn lets_only_equal_tags_pass_although_hashes_collide() {
        let subscription = SubscriptionData::tag_expression("T", "Aa", 0).unwrap();
        assert!(subscription.code_set.contains(&string_hash("BB")), "the broker lets BB pass");
        assert!(subscription.matches_tag(Some("Aa")));
        for tag in [Some("BB"), Some("aa"), Some(""), None] {
            assert!(!subscription.matches_tag(tag), "{tag:?}");
        }
    }

    #[test]
    fn filters_nothing_for_everything_for_sql_and_for_class_filters() {
        let all = SubscriptionData::tag_expression("T", "*", 0).unwrap();
        assert!(all.matches_tag(None) && all.matches_tag(Some("x")));
        let mut class = SubscriptionData::tag_expression("T", "A", 0).unwrap();
        class.class_filter_mode = true;
        assert!(class.matches_tag(Some("B")));
    }
}
