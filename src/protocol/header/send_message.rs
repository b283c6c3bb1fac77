//! Sends: `SEND_MESSAGE` (10, long names), `SEND_MESSAGE_V2` (310) and `SEND_BATCH_MESSAGE` (320) with one-letter names,
//! their replies (324, 325), and the reply that a broker passes on (326).
//!
//! Both sets of names mean the same, so there is one struct. It is written with letters, as clients do; in place of
//! [`SendMessageRequestHeader`] write [`LongNames`] for the long ones. Reading takes either.

use crate::error::Result;
use crate::protocol::command_header::{CommandHeader, HeaderField, HeaderFields, command_header};
use crate::protocol::decimal::LONGEST;
use crate::protocol::entry_form::EntryForm;
use crate::protocol::ext_fields::ExtFields;
use crate::protocol::key::{KEY_ROOM, Key, key};
use std::fmt;

const FIELDS: usize = 14;

const LETTERS: [&Key; FIELDS] = [
    key!("i"),
    key!("a"),
    key!("b"),
    key!("c"),
    key!("d"),
    key!("e"),
    key!("f"),
    key!("g"),
    key!("h"),
    key!("j"),
    key!("k"),
    key!("l"),
    key!("m"),
    key!("n"),
];

const LONG: [&Key; FIELDS] = [
    key!("properties"),
    key!("producerGroup"),
    key!("topic"),
    key!("defaultTopic"),
    key!("defaultTopicQueueNums"),
    key!("queueId"),
    key!("sysFlag"),
    key!("bornTimestamp"),
    key!("flag"),
    key!("reconsumeTimes"),
    key!("unitMode"),
    key!("maxReconsumeTimes"),
    key!("batch"),
    key!("bname"),
];

/// Sends one message, or a batch; the body is the message's.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SendMessageRequestHeader<'a> {
    /// The producer group.
    pub producer_group: &'a str,
    /// The topic.
    pub topic: &'a str,
    /// The topic to take the settings from, should the broker create this one.
    pub default_topic: &'a str,
    /// How many queues it would get.
    pub default_topic_queue_nums: i32,
    /// The queue; below 0 the broker picks one.
    pub queue_id: i32,
    /// Bits of `MessageSysFlag`: compression, transaction.
    pub sys_flag: i32,
    /// When the message was made, in milliseconds.
    pub born_timestamp: i64,
    /// The user's flag.
    pub flag: i32,
    /// The properties in their text form; never empty.
    pub properties: Option<&'a str>,
    /// How often it was consumed before: 0 but for retries.
    pub reconsume_times: Option<i32>,
    /// False.
    pub unit_mode: Option<bool>,
    /// Only for sends to a retry topic.
    pub max_reconsume_times: Option<i32>,
    /// Whether the body is a batch (since 4.1). Brokers go by this, not by the request code.
    pub batch: Option<bool>,
    /// The name of the broker.
    pub bname: Option<&'a str>,
}

impl<'a> SendMessageRequestHeader<'a> {
    fn read_named(keys: &[&'static Key; FIELDS], values: [Option<&'a [u8]>; FIELDS]) -> Result<Self> {
        fn field<'a, T: HeaderField<'a>>(key: &Key, value: Option<&'a [u8]>) -> Result<T> {
            T::read(value).map_err(|fault| fault.error("SendMessageRequestHeader", key, value))
        }
        let [ki, ka, kb, kc, kd, ke, kf, kg, kh, kj, kk, kl, km, kn] = keys;
        let [i, a, b, c, d, e, f, g, h, j, k, l, m, n] = values;
        Ok(Self {
            properties: field(ki, i)?,
            producer_group: field(ka, a)?,
            topic: field(kb, b)?,
            default_topic: field(kc, c)?,
            default_topic_queue_nums: field(kd, d)?,
            queue_id: field(ke, e)?,
            sys_flag: field(kf, f)?,
            born_timestamp: field(kg, g)?,
            flag: field(kh, h)?,
            reconsume_times: field(kj, j)?,
            unit_mode: field(kk, k)?,
            max_reconsume_times: field(kl, l)?,
            batch: field(km, m)?,
            bname: field(kn, n)?,
        })
    }
}

/// A header together with the names to write it with.
struct Named<'a>(&'a SendMessageRequestHeader<'a>, &'static [&'static Key; FIELDS]);

impl HeaderFields for Named<'_> {
    fn room(&self) -> usize {
        let header = self.0;
        let texts = [header.producer_group, header.topic, header.default_topic];
        let texts = texts.into_iter().chain(header.properties).chain(header.bname);
        FIELDS * (KEY_ROOM + LONGEST) + texts.map(str::len).sum::<usize>()
    }

    fn put<F: EntryForm>(&self, out: &mut [u8], at: usize) -> (usize, bool) {
        let Self(header, [i, a, b, c, d, e, f, g, h, j, k, l, m, n]) = self;
        let (at, i_plain) = header.properties.put::<F>(out, at, i);
        if !i_plain {
            // The separators in it nearly always need the other form, so the rest can be left.
            return (at, false);
        }
        let (at, a_plain) = header.producer_group.put::<F>(out, at, a);
        let (at, b_plain) = header.topic.put::<F>(out, at, b);
        let (at, c_plain) = header.default_topic.put::<F>(out, at, c);
        let (at, _) = header.default_topic_queue_nums.put::<F>(out, at, d);
        let (at, _) = header.queue_id.put::<F>(out, at, e);
        let (at, _) = header.sys_flag.put::<F>(out, at, f);
        let (at, _) = header.born_timestamp.put::<F>(out, at, g);
        let (at, _) = header.flag.put::<F>(out, at, h);
        let (at, _) = header.reconsume_times.put::<F>(out, at, j);
        let (at, _) = header.unit_mode.put::<F>(out, at, k);
        let (at, _) = header.max_reconsume_times.put::<F>(out, at, l);
        let (at, _) = header.batch.put::<F>(out, at, m);
        let (at, n_plain) = header.bname.put::<F>(out, at, n);
        (at, a_plain && b_plain && c_plain && n_plain)
    }
}

impl<'a> CommandHeader<'a> for SendMessageRequestHeader<'a> {
    /// Writes the one-letter names of requests 310, 320 and 325.
    fn write(&self, out: &mut ExtFields) {
        out.put_header(&Named(self, &LETTERS));
    }

    /// Reads either set of names.
    fn read(ext: &'a ExtFields) -> Result<Self> {
        let letters = ext.collect(&LETTERS);
        if letters[1].is_some() {
            return Self::read_named(&LETTERS, letters);
        }
        let long = ext.collect(&LONG);
        // Complain about the letters when neither set is there: they are what clients send.
        if long[1].is_some() { Self::read_named(&LONG, long) } else { Self::read_named(&LETTERS, letters) }
    }
}

impl fmt::Debug for SendMessageRequestHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendMessageRequestHeader")
            .field("producer_group", &self.producer_group)
            .field("topic", &self.topic)
            .field("queue_id", &self.queue_id)
            .field("sys_flag", &self.sys_flag)
            .field("properties_length", &self.properties.map(str::len))
            .field("reconsume_times", &self.reconsume_times)
            .field("batch", &self.batch)
            .field("bname", &self.bname)
            .finish_non_exhaustive()
    }
}

/// A send header that is written with the long names of requests 10 and 324.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LongNames<'a>(pub SendMessageRequestHeader<'a>);

impl<'a> CommandHeader<'a> for LongNames<'a> {
    fn write(&self, out: &mut ExtFields) {
        out.put_header(&Named(&self.0, &LONG));
    }

    fn read(ext: &'a ExtFields) -> Result<Self> {
        SendMessageRequestHeader::read(ext).map(Self)
    }
}

command_header! {
    /// Answer to a send, with codes 0, 10, 11 and 12: in all four the message is stored.
    // In the order in which Java's hash map has the fields.
    pub struct SendMessageResponseHeader<'a> {
        /// The queue.
        pub queue_id: i32 => "queueId",
        /// Whether the broker wants traces.
        pub trace_on: Option<bool> => "TRACE_ON",
        /// The region of the broker.
        pub msg_region: Option<&'a str> => "MSG_REGION",
        /// The *offset* message id; of a batch all of them, with commas between.
        pub msg_id: &'a str => "msgId",
        /// The queue offset, of a batch the first one.
        pub queue_offset: i64 => "queueOffset",
        /// What a timer message can be recalled with (since 5.3.2).
        pub recall_handle: Option<&'a str> => "recallHandle",
        /// Of a batch that was stored as one message (since 5.0).
        pub batch_uniq_id: Option<&'a str> => "batchUniqId",
        /// The unique key of the message.
        pub transaction_id: Option<&'a str> => "transactionId",
    }
}

command_header! {
    /// `PUSH_REPLY_MESSAGE_TO_CLIENT` (326): a broker hands on a reply.
    pub struct ReplyMessageRequestHeader<'a> {
        /// The group of who replies.
        pub producer_group: &'a str => "producerGroup",
        /// The reply topic.
        pub topic: &'a str => "topic",
        /// The template topic.
        pub default_topic: &'a str => "defaultTopic",
        /// Its number of queues.
        pub default_topic_queue_nums: i32 => "defaultTopicQueueNums",
        /// The queue.
        pub queue_id: i32 => "queueId",
        /// Bits of `MessageSysFlag`.
        pub sys_flag: i32 => "sysFlag",
        /// When the reply was made, in milliseconds.
        pub born_timestamp: i64 => "bornTimestamp",
        /// The user's flag.
        pub flag: i32 => "flag",
        /// The properties in their text form; `CORRELATION_ID` is in them.
        pub properties: Option<&'a str> => "properties",
        /// How often it was consumed before.
        pub reconsume_times: Option<i32> => "reconsumeTimes",
        /// False.
        pub unit_mode: bool => "unitMode" = false,
        /// Who sent it.
        pub born_host: &'a str => "bornHost",
        /// The broker.
        pub store_host: &'a str => "storeHost",
        /// When the broker got it, in milliseconds.
        pub store_timestamp: i64 => "storeTimestamp",
    }
}
