//! Properties of a message: their names, and the string they travel in.
//!
//! The string is `name 0x01 value 0x02`, repeated, without escapes. Writers put the last 0x02 (brokers and agents
//! append to the string blindly); readers do without it. What a reader cannot make sense of it drops: a segment
//! without 0x01, an empty name, an empty value. Of equal names the last one counts.
//!
//! Source: `MessageConst`, `MessageDecoder` of Apache RocketMQ.

use byteorder::{ByteOrder, LittleEndian};

/// Between a name and its value.
pub const NAME_VALUE_SEPARATOR: char = '\u{1}';
/// Behind every value.
pub const PROPERTY_SEPARATOR: char = '\u{2}';
/// Longest property string a broker takes, in bytes, what it adds itself included.
pub const MAX_LENGTH: usize = i16::MAX as usize;

macro_rules! names {
    (reserved { $($(#[$doc:meta])* $name:ident = $text:literal;)* } free { $($(#[$free_doc:meta])* $free:ident = $free_text:literal;)* }) => {
        $($(#[$doc])* pub const $name: &str = $text;)*
        $($(#[$free_doc])* pub const $free: &str = $free_text;)*
        /// Names that are the system's: users set them through methods of their own, if at all.
        const RESERVED: &[&str] = &[$($text),*];
    };
}

names! {
    reserved {
        /// Keys of the message index, separated by blanks.
        KEYS = "KEYS";
        /// The tag.
        TAGS = "TAGS";
        /// `false`: the broker answers before the message is on disk and on its replicas.
        WAIT_STORE_MSG_OK = "WAIT";
        /// The delay level.
        DELAY_TIME_LEVEL = "DELAY";
        /// The id that the client made.
        UNIQ_KEY = "UNIQ_KEY";
        /// The topic that a message of a retry topic comes from.
        RETRY_TOPIC = "RETRY_TOPIC";
        /// The topic that the message goes to when it leaves a system topic.
        REAL_TOPIC = "REAL_TOPIC";
        /// The queue that the message goes to when it leaves a system topic.
        REAL_QUEUE_ID = "REAL_QID";
        /// The id of the first copy of a message that was retried.
        ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID";
        /// How often the message was retried, on retries that the client sends itself.
        RECONSUME_TIME = "RECONSUME_TIME";
        /// How often it may be retried, on retries that the client sends itself.
        MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES";
        /// When a listener got the message, in milliseconds.
        CONSUME_START_TIME = "CONSUME_START_TIME";
        /// The least offset of the queue when the message was pulled.
        MIN_OFFSET = "MIN_OFFSET";
        /// The end of the queue when the message was pulled.
        MAX_OFFSET = "MAX_OFFSET";
        /// `true` on half messages.
        TRANSACTION_PREPARED = "TRAN_MSG";
        /// The producer group of a transaction.
        PRODUCER_GROUP = "PGROUP";
        /// Broker-internal.
        TRANSACTION_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET";
        /// The region of the broker.
        MSG_REGION = "MSG_REGION";
        /// Whether the message is to be traced.
        TRACE_SWITCH = "TRACE_ON";
        /// The cluster of the broker.
        CLUSTER = "CLUSTER";
        /// The namespace.
        INSTANCE_ID = "INSTANCE_ID";
        /// Ties a reply to its request.
        CORRELATION_ID = "CORRELATION_ID";
        /// The client that waits for the reply.
        MESSAGE_REPLY_TO_CLIENT = "REPLY_TO_CLIENT";
        /// How long a request waits for its reply, in milliseconds.
        MESSAGE_TTL = "TTL";
        /// `reply` on replies.
        MESSAGE_TYPE = "MSG_TYPE";
        /// When the broker got the reply.
        REPLY_MESSAGE_ARRIVE_TIME = "ARRIVE_TIME";
        /// When the broker passed the reply on.
        PUSH_REPLY_TIME = "PUSH_REPLY_TIME";
        /// Delay in seconds.
        TIMER_DELAY_SEC = "TIMER_DELAY_SEC";
        /// Delay in milliseconds.
        TIMER_DELAY_MS = "TIMER_DELAY_MS";
        /// Time of delivery in milliseconds.
        TIMER_DELIVER_MS = "TIMER_DELIVER_MS";
        /// Broker-internal.
        TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS";
        /// Broker-internal.
        TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS";
        /// Broker-internal.
        TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES";
        /// Broker-internal.
        TIMER_OUT_MS = "TIMER_OUT_MS";
        /// Broker-internal.
        TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY";
        /// Broker-internal.
        TIMER_DELAY_LEVEL = "TIMER_DELAY_LEVEL";
        /// Check point of a pop.
        POP_CK = "POP_CK";
        /// Check point of a pop.
        POP_CK_OFFSET = "POP_CK_OFFSET";
        /// When the message was popped first.
        FIRST_POP_TIME = "1ST_POP_TIME";
        /// The topic of a dead letter.
        DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC";
        /// The id of a dead letter.
        DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID";
        /// Offsets in light queues.
        INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET";
        /// Set by a proxy.
        BORN_TIMESTAMP = "BORN_TIMESTAMP";
        /// Set by a proxy.
        BORN_HOST = "__BORNHOST";
        /// Legacy.
        BUYER_ID = "BUYER_ID";
        /// Legacy.
        TRANSFER_FLAG = "TRANSFER_FLAG";
        /// Legacy.
        CORRECTION_FLAG = "CORRECTION_FLAG";
        /// Legacy.
        MQ2_FLAG = "MQ2_FLAG";
        /// Legacy.
        DUP_INFO = "DUP_INFO";
        /// Legacy.
        EXTEND_UNIQ_INFO = "EXTEND_UNIQ_INFO";
        /// Checksum of the whole record.
        CRC32 = "__CRC32#";
    }
    free {
        /// The id of a transaction.
        TRANSACTION_ID = "__transactionId__";
        /// How often the broker asked for the state of a transaction.
        TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES";
        /// How long the broker waits before it first asks for the state of a transaction, in seconds.
        CHECK_IMMUNITY_TIME_IN_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS";
        /// What messages of one order share.
        SHARDING_KEY = "__SHARDINGKEY";
        /// Number of messages in an inner batch.
        INNER_NUM = "INNER_NUM";
        /// Queue offset of the first message of an inner batch.
        INNER_BASE = "INNER_BASE";
        /// The light queues that the message also goes to.
        INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH";
    }
}

/// Whether users must not set the property themselves.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Writes the properties as a string, the last separator included. Names and values are written as they are.
pub fn encode<'a>(properties: impl IntoIterator<Item = (&'a str, &'a str)>, out: &mut String) {
    for (name, value) in properties {
        out.push_str(name);
        out.push(NAME_VALUE_SEPARATOR);
        out.push_str(value);
        out.push(PROPERTY_SEPARATOR);
    }
}

/// Reads a property string, in its order, without what has to be dropped. Equal names are all reported.
pub fn parse(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(PROPERTY_SEPARATOR)
        .filter_map(|segment| segment.split_once(NAME_VALUE_SEPARATOR))
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
}

/// The value of `name` in the bytes of a property string; of equal names the last one.
///
/// Consumers look at several properties of every message, so the separators are sought eight bytes at a time.
pub fn find<'a>(bytes: &'a [u8], name: &str) -> Option<&'a str> {
    if name.is_empty() || name.contains(NAME_VALUE_SEPARATOR) {
        return None;
    }
    let value_of = |segment: &'a [u8]| {
        // The one byte first: it tells most names apart without a comparison.
        let named = *segment.get(name.len())? == NAME_VALUE_SEPARATOR as u8 && segment.starts_with(name.as_bytes());
        let value = segment.get(name.len() + 1..).filter(|value| named && !value.is_empty())?;
        // Bytes that are not UTF-8 never get here from a message; see `store_codec`.
        std::str::from_utf8(value).ok()
    };
    let mut end = bytes.len();
    let words = bytes.rchunks_exact(8);
    let mut word_at = bytes.len();
    for word in words {
        word_at -= 8;
        let mut found = separators(word);
        while found != 0 {
            let last = 7 - found.leading_zeros() as usize / 8;
            found ^= 0x80 << (8 * last);
            let at = word_at + last;
            if let Some(value) = value_of(&bytes[at + 1..end]) {
                return Some(value);
            }
            end = at;
        }
    }
    bytes[..end].rsplit(|byte| *byte == PROPERTY_SEPARATOR as u8).find_map(value_of)
}

/// The top bit of each of eight bytes, the first byte lowest: set where it is a [`PROPERTY_SEPARATOR`].
fn separators(word: &[u8]) -> u64 {
    const LOW_BITS: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let word = LittleEndian::read_u64(word) ^ (0x0101_0101_0101_0101 * PROPERTY_SEPARATOR as u64);
    // A byte is zero now where it was a separator; the sum carries into its top bit from any other.
    !(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn drops_what_java_drops_when_reading() {
        let read = |text| parse(text).collect::<Vec<_>>();
        let text = "a\u{1}b\u{2}c\u{1}\u{2}\u{1}x\u{2}de\u{2}f\u{1}g";
        assert_eq!(read(text), [("a", "b"), ("f", "g")]);
        assert_eq!(read(""), []);
        assert_eq!(read("\u{2}\u{2}"), []);
        assert_eq!(read("k\u{1}v\u{1}w\u{2}"), [("k", "v\u{1}w")]);
        assert_eq!(read("k\u{1}v"), read("k\u{1}v\u{2}"));
    }

    #[test]
    fn finds_what_a_map_of_the_parsed_pairs_holds() {
        let texts = [
            "a\u{1}b\u{2}c\u{1}\u{2}\u{1}x\u{2}de\u{2}f\u{1}g",
            "a\u{1}1\u{2}a\u{1}2\u{2}a\u{1}\u{2}",
            "a\u{1}\u{1}b\u{2}ab\u{1}c",
            "标签\u{1}值\u{2}a\u{1}é",
        ];
        for text in texts {
            let map: BTreeMap<_, _> = parse(text).collect();
            for name in ["a", "ab", "c", "de", "f", "", "x", "标签", "a\u{1}", "a\u{1}\u{1}"] {
                assert_eq!(find(text.as_bytes(), name), map.get(name).copied(), "{name:?} in {text:?}");
            }
        }
    }

    #[test]
    fn writes_the_last_separator_and_empty_values() {
        let mut out = String::new();
        encode([("a", ""), ("k", "v")], &mut out);
        assert_eq!(out.as_bytes(), [0x61, 1, 2, 0x6b, 1, 0x76, 2]);
    }

    #[test]
    fn an_appended_property_does_not_run_into_the_last_one() {
        let mut out = String::new();
        encode([(TAGS, "TagA")], &mut out);
        out.push_str("TRACE_ON\u{1}true\u{2}");
        assert_eq!(find(out.as_bytes(), TAGS), Some("TagA"));
    }

    #[test]
    fn keeps_the_names_of_the_system_from_users() {
        for name in [KEYS, UNIQ_KEY, CRC32, FIRST_POP_TIME, MAX_RECONSUME_TIMES] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["user", SHARDING_KEY, CHECK_IMMUNITY_TIME_IN_SECONDS, "keys"] {
            assert!(!is_reserved(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn finds_the_last_value_at_every_place_of_any_text(text in "[ab\u{1}\u{2}é]{0,60}", name in "[ab]{1,2}") {
            let map: BTreeMap<_, _> = parse(&text).collect();
            prop_assert_eq!(find(text.as_bytes(), &name), map.get(name.as_str()).copied());
        }
    }
}
