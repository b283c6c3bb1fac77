//! What a broker registers at a name server.

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::body::{DataVersion, TopicConfig, TopicConfigSerializeWrapper, json_body};
use flate2::read::ZlibDecoder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;

/// Most bytes that a compressed body may become.
const MOST_INFLATED: u64 = 64 * 1024 * 1024;

/// Body of `REGISTER_BROKER`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RegisterBrokerBody {
    /// Legacy filter servers.
    pub filter_server_list: Vec<String>,
    /// The topics, and when they were last changed.
    pub topic_config_serialize_wrapper: TopicConfigSerializeWrapper,
}

json_body!(RegisterBrokerBody);

impl RegisterBrokerBody {
    /// Reads the compressed form: parts with their lengths in front, where each topic is a line of text.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] when it is damaged, or inflates to more than 64 MiB.
    pub fn decode_compressed(body: &[u8]) -> Result<Self> {
        let wrong = |why: String| Error::new(ErrorKind::Protocol, format!("RegisterBrokerBody, compressed: {why}"));
        let mut parts = Vec::new();
        let mut input = ZlibDecoder::new(body).take(MOST_INFLATED + 1);
        input.read_to_end(&mut parts).map_err(|error| wrong(error.to_string()))?;
        if parts.len() as u64 > MOST_INFLATED {
            return Err(wrong(format!("it inflates to more than {MOST_INFLATED} bytes")));
        }
        let mut rest = &parts[..];
        let cut = || wrong("it is cut short".into());
        let data_version = DataVersion::decode(part(&mut rest).ok_or_else(cut)?)?;
        let count = number(&mut rest).ok_or_else(cut)?;
        let mut topic_config_table = BTreeMap::new();
        for _ in 0..count {
            let line = String::from_utf8_lossy(part(&mut rest).ok_or_else(cut)?);
            let topic = topic_of_line(&line).ok_or_else(|| wrong(format!("'{line:.100}' is no topic")))?;
            topic_config_table.insert(topic.topic_name.clone(), topic);
        }
        let list = part(&mut rest).ok_or_else(cut)?;
        let filter_server_list = serde_json::from_slice(list).unwrap_or_default();
        // What follows since 5.0 is about static topics.
        Ok(Self {
            filter_server_list,
            topic_config_serialize_wrapper: TopicConfigSerializeWrapper { data_version, topic_config_table },
        })
    }
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let (head, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    usize::try_from(i32::from_be_bytes(*head)).ok()
}

fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(rest)?;
    let (part, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(part)
}

/// Name, queues to read and to write, permission, filter type, and since 5.0 attributes as JSON.
fn topic_of_line(line: &str) -> Option<TopicConfig> {
    let mut words = line.splitn(6, ' ');
    let mut topic =
        TopicConfig { topic_name: words.next().filter(|name| !name.is_empty())?.into(), ..Default::default() };
    topic.read_queue_nums = words.next()?.parse().ok()?;
    topic.write_queue_nums = words.next()?.parse().ok()?;
    topic.perm = words.next()?.parse().ok()?;
    topic.topic_filter_type = words.next()?.into();
    // Attributes that do not parse are none, as upstream.
    topic.attributes = words.next().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    Some(topic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    fn compressed(parts: &[&[u8]]) -> Vec<u8> {
        let mut out = ZlibEncoder::new(Vec::new(), Compression::default());
        parts.iter().for_each(|part| out.write_all(part).unwrap());
        out.finish().unwrap()
    }

    fn with_length(text: &str) -> Vec<u8> {
        let mut out = (text.len() as u32).to_be_bytes().to_vec();
        out.extend_from_slice(text.as_bytes());
        out
    }

    #[test]
    fn reads_topics_from_lines() {
        let version = with_length(r#"{"counter":3,"stateVersion":0,"timestamp":7}"#);
        let lines = [with_length("T 8 4 6 SINGLE_TAG "), with_length(r#"U 1 1 4 MULTI_TAG {"+a":"x y"}"#)];
        let mapping = 0_u32.to_be_bytes();
        let body = compressed(&[&version, &2_u32.to_be_bytes(), &lines[0], &lines[1], &with_length("[]"), &mapping]);
        let body = RegisterBrokerBody::decode_compressed(&body).unwrap().topic_config_serialize_wrapper;
        assert_eq!((body.data_version.counter, body.data_version.timestamp), (3, 7));
        let topic = &body.topic_config_table["T"];
        assert_eq!((topic.read_queue_nums, topic.write_queue_nums, topic.perm), (8, 4, 6));
        assert_eq!(body.topic_config_table["U"].attributes["+a"], "x y");
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let version = with_length("{}");
        for body in [
            b"no zlib".to_vec(),
            compressed(&[&version]),
            compressed(&[&version, &5_u32.to_be_bytes()]),
            compressed(&[&version, &u32::MAX.to_be_bytes()]),
            compressed(&[&version, &1_u32.to_be_bytes(), &with_length("T x 4 6 SINGLE_TAG")]),
            compressed(&[&u32::MAX.to_be_bytes()]),
        ] {
            assert_eq!(RegisterBrokerBody::decode_compressed(&body).unwrap_err().kind(), ErrorKind::Protocol);
        }
    }
}
