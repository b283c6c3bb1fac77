//! The producer: blocking sends, to any queue, to one, or through a selector.

mod config;
mod publish_info;
mod result;
mod selector;
mod send;

pub use config::ProducerBuilder;
pub use result::{SendResult, SendStatus};
pub use selector::{MessageQueueSelector, SelectByHash};

use crate::error::{Error, ErrorKind, Result};
use crate::instance::role::ProducerRole;
use crate::instance::{self, ClientInstance};
use crate::message::{Message, MessageQueue, batch, id, topic};
use crate::sync::{Mutex, Rank, RwLock};
use crate::time::Deadline;
use config::ProducerConfig;
use publish_info::TopicPublishInfo;
use send::{Outgoing, Sender};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const STOP_ON_DROP: Duration = Duration::from_secs(3);
/// A topic unused for so long is forgotten, with its route (field report 86).
const FORGET_AFTER: Duration = Duration::from_secs(600);

/// Sends messages, from any number of threads.
///
/// A send that fails at one broker is tried at others. After an error whose
/// [`is_outcome_unknown`](Error::is_outcome_unknown) is true the message may be stored all the same.
///
/// ```
/// use rocketmq_sync::{EmbeddedCluster, Message, Producer, SelectByHash};
/// # fn main() -> rocketmq_sync::Result<()> {
/// let cluster = EmbeddedCluster::builder().topic("orders", 4).start()?;
/// let producer = Producer::builder("shop").name_servers(cluster.name_servers()).start()?;
/// let sent = producer.send(&Message::new("orders", "an order").with_tags("paid").with_key("o-17"))?;
/// println!("{} lies in {}", sent.msg_id(), sent.message_queue());
/// producer.send_with_selector(&Message::new("orders", "its receipt"), SelectByHash("o-17"))?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "DefaultMQProducer")]
pub struct Producer {
    shared: Arc<Shared>,
    stopped: Mutex<bool>,
}

struct Shared {
    config: ProducerConfig,
    group: Arc<str>,
    instance: Arc<ClientInstance>,
    topics: RwLock<HashMap<Arc<str>, Published>>,
    stopping: AtomicBool,
}

/// A topic that was sent to.
struct Published {
    info: Arc<TopicPublishInfo>,
    used: Instant,
}

impl ProducerRole for Shared {
    fn group(&self) -> &Arc<str> {
        &self.group
    }

    fn topics(&self) -> Vec<Arc<str>> {
        let mut topics = self.topics.write();
        topics.retain(|_, published| published.used.elapsed() < FORGET_AFTER);
        let template = topics.values().any(|published| published.info.is_template);
        let template = template.then(|| Arc::from(topic::AUTO_CREATE_TOPIC));
        topics.keys().cloned().chain(template).collect()
    }
}

impl Producer {
    /// Settings for a producer of this group.
    pub fn builder(group: impl Into<String>) -> ProducerBuilder {
        ProducerBuilder::new(group)
    }

    fn start(config: ProducerConfig) -> Result<Self> {
        let instance = instance::acquire(&config.client)?;
        let topics: Vec<Arc<str>> = config.topics.iter().map(|topic| Arc::from(topic.as_str())).collect();
        let shared = Arc::new(Shared {
            group: Arc::from(config.group.as_str()),
            config,
            instance: instance.clone(),
            topics: RwLock::new(Rank::Leaf, HashMap::new()),
            stopping: AtomicBool::new(false),
        });
        let role: Arc<dyn ProducerRole> = shared.clone();
        if let Err(error) = instance.add_producer(&role) {
            instance::release(&instance);
            return Err(error);
        }
        let producer = Self { shared, stopped: Mutex::new(Rank::Round, false) };
        for topic in &topics {
            if let Err(error) = producer.shared.publish_info(topic) {
                log::warn!("the route of '{topic}' is not known yet: {error}");
            }
        }
        if !topics.is_empty() {
            instance.heartbeat_soon();
        }
        Ok(producer)
    }

    /// The producer group.
    pub fn group(&self) -> &str {
        &self.shared.group
    }

    /// The id of this client.
    pub fn client_id(&self) -> &str {
        self.shared.instance.client_id()
    }

    /// Sends and waits until a broker has stored the message.
    ///
    /// # Errors
    /// [`ErrorKind::MessageIllegal`] before anything is sent; [`ErrorKind::NoRoute`] when no name server knows the
    /// topic and brokers create none; else the failure of the last try, with those before it in its text.
    pub fn send(&self, message: &Message) -> Result<SendResult> {
        self.shared.check(message)?;
        let deadline = Deadline::after(self.shared.config.send_timeout);
        let outgoing = Outgoing::single(&self.shared.config, message, id::create_unique_id())?;
        self.shared.anywhere(&outgoing, deadline)
    }

    /// Sends to this queue; no other is tried.
    ///
    /// # Errors
    /// As [`send`](Self::send); [`ErrorKind::Config`] when the queue is of another topic.
    pub fn send_to_queue(&self, message: &Message, queue: &MessageQueue) -> Result<SendResult> {
        self.shared.check(message)?;
        if message.topic() != queue.topic() {
            let text = format!("a message to '{}' cannot go to queue {queue}", message.topic());
            return Err(Error::new(ErrorKind::Config, text));
        }
        let deadline = Deadline::after(self.shared.config.send_timeout);
        let outgoing = Outgoing::single(&self.shared.config, message, id::create_unique_id())?;
        // The broker's address comes with the topic's route.
        self.shared.publish_info(message.shared_topic())?;
        self.shared.sender().to_queue(queue, &outgoing, deadline)
    }

    /// Sends to the queue that the selector names; no other is tried, since the choice keeps an order.
    ///
    /// # Errors
    /// As [`send`](Self::send); [`ErrorKind::UserCode`] when the selector names no queue of the list.
    pub fn send_with_selector(&self, message: &Message, selector: impl MessageQueueSelector) -> Result<SendResult> {
        self.shared.check(message)?;
        let deadline = Deadline::after(self.shared.config.send_timeout);
        let outgoing = Outgoing::single(&self.shared.config, message, id::create_unique_id())?;
        let info = self.shared.publish_info(message.shared_topic())?;
        let chosen = selector.select(&info.queues, message).and_then(|at| info.queues.get(at)).ok_or_else(|| {
            let text = format!("the selector named none of the {} queues of '{}'", info.queues.len(), message.topic());
            Error::new(ErrorKind::UserCode, text)
        })?;
        self.shared.sender().to_queue(chosen, &outgoing, deadline)
    }

    /// Hands the message to a connection and does not wait: fast, and nobody learns of a loss.
    ///
    /// # Errors
    /// Only for what is known before: an illegal message, no route, a full queue of this client.
    pub fn send_oneway(&self, message: &Message) -> Result<()> {
        self.shared.check(message)?;
        let outgoing = Outgoing::single(&self.shared.config, message, id::create_unique_id())?;
        let info = self.shared.publish_info(message.shared_topic())?;
        match info.next_queue(&[]) {
            Some(queue) => self.shared.sender().oneway(queue, &outgoing),
            None => Err(no_queue(message.topic())),
        }
    }

    /// Sends messages of one topic in one request, to one queue, all or none.
    ///
    /// # Errors
    /// As [`send`](Self::send); [`ErrorKind::MessageIllegal`] also when topics differ, when a message has a delay, or
    /// when all together are too large.
    pub fn send_batch(&self, messages: &[Message]) -> Result<SendResult> {
        for message in messages {
            self.shared.check(message)?;
        }
        let mut members = messages.to_vec();
        let mut ids = Vec::with_capacity(members.len());
        for member in &mut members {
            if member.unique_key().is_none() {
                member.set_raw_property(crate::message::properties::UNIQ_KEY, id::create_unique_id());
            }
            ids.push(member.unique_key().unwrap_or_default().to_owned());
            send::checked_properties(member.topic(), member.properties_string())?;
        }
        batch::check_batch(&members)?;
        let body = batch::encode_batch(&members)?;
        self.shared.check_size(members[0].topic(), body.len())?;
        let first = &members[0];
        let outgoing = Outgoing::batch(first.shared_topic().clone(), body, ids.join(","), first.wait_store());
        self.shared.anywhere(&outgoing, Deadline::after(self.shared.config.send_timeout))
    }

    /// The queues of a topic that can be written to, in order.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn publish_queues(&self, topic: &str) -> Result<Vec<MessageQueue>> {
        topic::check_topic(topic)?;
        Ok(self.shared.publish_info(&Arc::from(topic))?.queues.to_vec())
    }

    /// Leaves the group and gives the connections up. Further sends fail. A second call does nothing.
    pub fn shutdown(&self, timeout: Duration) {
        let mut stopped = self.stopped.lock();
        if std::mem::replace(&mut *stopped, true) {
            return;
        }
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.instance.remove_producer(&self.shared.group, Deadline::after(timeout));
        instance::release(&self.shared.instance);
    }
}

impl Shared {
    fn sender(&self) -> Sender<'_> {
        Sender { instance: &self.instance, config: &self.config }
    }

    fn check(&self, message: &Message) -> Result<()> {
        if self.stopping.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::State, format!("producer '{}' was shut down", self.group)));
        }
        message.check()?;
        topic::check_topic(message.topic())?;
        if topic::FORBIDDEN_TO_SEND.contains(&message.topic()) {
            let text = format!("topic '{}' belongs to the brokers", message.topic());
            return Err(Error::new(ErrorKind::MessageIllegal, text));
        }
        if message.body().is_empty() {
            let text = format!("a message to '{}' has an empty body, which brokers refuse", message.topic());
            return Err(Error::new(ErrorKind::MessageIllegal, text));
        }
        self.check_size(message.topic(), message.body().len())
    }

    fn check_size(&self, topic: &str, size: usize) -> Result<()> {
        let most = self.config.max_message_size;
        if size <= most {
            return Ok(());
        }
        let text = format!("a message to '{topic}' has {size} bytes; max_message_size is {most}");
        Err(Error::new(ErrorKind::MessageIllegal, text))
    }

    fn anywhere(&self, outgoing: &Outgoing, deadline: Deadline) -> Result<SendResult> {
        let info = self.publish_info(&outgoing.topic)?;
        let result = self.sender().anywhere(&info, outgoing, deadline);
        if info.is_template && result.is_ok() {
            // The topic exists now; its own route replaces the template's.
            self.instance.refresh_routes_soon();
        }
        result
    }

    /// The queues to write to: those of the topic, else those that brokers will make for it.
    fn publish_info(&self, name: &Arc<str>) -> Result<Arc<TopicPublishInfo>> {
        let known = self.instance.known_route(name);
        {
            let mut topics = self.topics.write();
            if let Some(published) = topics.get_mut(name) {
                published.used = Instant::now();
                let is_current = match &known {
                    Some(route) => Arc::ptr_eq(&route.writable, &published.info.queues),
                    None => published.info.is_template,
                };
                if is_current {
                    return Ok(published.info.clone());
                }
            }
        }
        let route = match known {
            Some(route) => Some(route),
            None => self.instance.refresh_route(name)?,
        };
        let info = match route {
            Some(route) if route.writable.is_empty() => return Err(no_queue(name)),
            Some(route) => TopicPublishInfo::new(&route),
            None => match self.instance.route(&Arc::from(topic::AUTO_CREATE_TOPIC))? {
                Some(template) if !template.writable.is_empty() => {
                    TopicPublishInfo::from_template(&template, name, self.config.default_topic_queues)
                }
                _ => {
                    let servers = self.instance.name_servers().join(", ");
                    let text = format!(
                        "the name servers {servers} know no topic '{name}', and brokers create none by themselves; create it"
                    );
                    return Err(Error::new(ErrorKind::NoRoute, text));
                }
            },
        };
        let info = Arc::new(info);
        self.topics.write().insert(name.clone(), Published { info: info.clone(), used: Instant::now() });
        Ok(info)
    }
}

fn no_queue(topic: &str) -> Error {
    let text = format!("topic '{topic}' has no queue to write to: no permission, or no master of its brokers");
    Error::new(ErrorKind::NoRoute, text)
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shutdown(STOP_ON_DROP);
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("group", &self.shared.group).field("client_id", &self.client_id()).finish()
    }
}
