//! Which messages of a topic a consumer wants.

use crate::error::{Error, ErrorKind, Result};
use crate::instance::ClientInstance;
use crate::protocol::SubscriptionData;
use crate::protocol::body::CheckClientRequestBody;
use crossbeam::channel::unbounded;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The filter of one subscription: tags, or an SQL92 condition over message properties.
///
/// Text turns into a tag expression, so `subscribe("orders", "paid || refunded")` needs no selector. The class filters
/// of early 4.x brokers are not offered: no broker since 5.0 runs them.
///
/// ```
/// use rocketmq_sync::MessageSelector;
/// assert_eq!(MessageSelector::from("paid||refunded"), MessageSelector::tags("paid||refunded"));
/// assert_eq!(MessageSelector::sql92("amount > 100").to_string(), "SQL92 'amount > 100'");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(alias = "org.apache.rocketmq.client.consumer.MessageSelector")]
pub struct MessageSelector {
    kind: Kind,
    expression: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tags,
    Sql92,
}

impl MessageSelector {
    /// Every message.
    pub fn all() -> Self {
        Self::tags(SubscriptionData::ALL)
    }

    /// Messages with one of these tags: `*` or nothing for all, else tags with `||` between them. Blanks around a tag
    /// and empty tags are dropped. Brokers compare hashes of tags, and the consumer the tags themselves.
    #[doc(alias = "byTag")]
    pub fn tags(expression: impl Into<String>) -> Self {
        Self { kind: Kind::Tags, expression: expression.into() }
    }

    /// Messages whose properties fulfil an SQL92 condition, such as `a BETWEEN 0 AND 3 AND b IS NOT NULL`. Brokers
    /// evaluate it, when `enablePropertyFilter` is set in their configuration; they are asked before the consumer
    /// starts.
    #[doc(alias = "bySql")]
    pub fn sql92(expression: impl Into<String>) -> Self {
        Self { kind: Kind::Sql92, expression: expression.into() }
    }

    /// What stands on the wire for it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a tag expression without a tag, and an empty condition.
    pub(crate) fn subscription(&self, topic: &str, version: i64) -> Result<SubscriptionData> {
        match self.kind {
            Kind::Tags => SubscriptionData::tag_expression(topic, &self.expression, version),
            Kind::Sql92 => SubscriptionData::sql92(topic, &self.expression, version),
        }
    }
}

impl<T: Into<String>> From<T> for MessageSelector {
    fn from(expression: T) -> Self {
        Self::tags(expression)
    }
}

impl fmt::Display for MessageSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Tags => "tags",
            Kind::Sql92 => SubscriptionData::SQL92,
        };
        write!(f, "{kind} '{}'", self.expression)
    }
}

/// Asks every broker of a topic whether it takes the filter, unless it is one of tags, which all do. A broker that cannot
/// be asked refuses nothing.
pub(crate) fn check<'a>(
    instance: &ClientInstance,
    group: &str,
    timeout: Duration,
    filters: impl IntoIterator<Item = &'a SubscriptionData>,
) -> Result<()> {
    let (done, answers) = unbounded();
    for data in filters.into_iter().filter(|data| data.expression_type != SubscriptionData::TAG) {
        let topic: Arc<str> = Arc::from(&*data.topic);
        if let Err(error) = instance.route(&topic) {
            log::warn!("no broker was asked about the {} filter of topic '{topic}': {error}", data.expression_type);
        }
        let body = CheckClientRequestBody {
            client_id: instance.client_id().to_string(),
            group: group.to_owned(),
            namespace: None,
            subscription_data: data.clone(),
        };
        for address in instance.brokers_of(&topic) {
            let (done, asked) = (done.clone(), data.clone());
            instance.api().check_client(&address, &body, timeout, move |answer| {
                let _ = done.send((asked, answer));
            });
        }
    }
    drop(done);
    for (data, answer) in answers {
        match answer {
            Err(error) if is_refusal(&error) => return Err(refused(&data, error)),
            Err(error) => log::warn!("a broker was not asked about the filter of topic '{}': {error}", data.topic),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// The error for a filter that a broker refuses: it names what was asked for, and the broker's words follow.
fn refused(filter: &SubscriptionData, error: Error) -> Error {
    let SubscriptionData { topic, expression_type, sub_string, .. } = filter;
    error.context(format!("the broker refuses the {expression_type} filter '{sub_string}' of topic '{topic}'"))
}

/// Whether an answer to `CHECK_CLIENT_CONFIG` is a broker's word against the filter. One that cannot be reached, or is
/// too old to know the question, says nothing about it.
fn is_refusal(error: &Error) -> bool {
    use crate::protocol::ResponseCode;
    let silent = [ResponseCode::REQUEST_CODE_NOT_SUPPORTED, ResponseCode::SYSTEM_BUSY, ResponseCode::FLOW_CONTROL];
    error.kind() == ErrorKind::Broker
        && !error.response_code().is_some_and(|code| silent.iter().any(|known| known.0 == code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ResponseCode;

    #[test]
    fn a_condition_goes_out_as_it_is_and_filters_nothing_here() {
        let data = MessageSelector::sql92(" a > 1 || b ").subscription("T", 7).unwrap();
        assert_eq!((&*data.expression_type, &*data.sub_string, data.sub_version), ("SQL92", " a > 1 || b ", 7));
        assert!(data.tags_set.is_empty() && data.code_set.is_empty());
        assert!(data.matches_tag(None) && data.matches_tag(Some("x")));
        for empty in ["", "  "] {
            let error = MessageSelector::sql92(empty).subscription("T", 7).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains("'T'"), "{error}");
        }
    }

    #[test]
    fn only_a_broker_s_word_is_a_refusal() {
        assert!(is_refusal(&Error::broker(ResponseCode::SYSTEM_ERROR.0, "not enabled")));
        assert!(is_refusal(&Error::broker(ResponseCode::SUBSCRIPTION_PARSE_FAILED.0, "syntax")));
        assert!(!is_refusal(&Error::broker(ResponseCode::REQUEST_CODE_NOT_SUPPORTED.0, "")));
        assert!(!is_refusal(&Error::new(ErrorKind::Timeout, "")));
        let filter = MessageSelector::sql92("a >").subscription("T", 1).unwrap();
        let error = refused(&filter, Error::broker(23, "no operand").with_address("b:1"));
        let text = error.to_string();
        assert!(["'a >'", "'T'", "SQL92", "no operand", "b:1"].iter().all(|part| text.contains(part)), "{text}");
        assert_eq!(error.response_code(), Some(23));
    }
}
