//! Calls and requests: each call comes to exactly one outcome; each request of a peer is handed on or answered.

use super::Reactor;
use crate::error::{Error, ErrorKind};
use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};
use crate::remoting::call::{Call, Place, closed, describe, encode};
use crate::remoting::connection::ConnectionHandle;
use crate::remoting::op::ConnectionId;
use crate::remoting::processor::{RequestProcessor, failed, overloaded, unsupported};
use crate::remoting::stats::{Counters, count};
use crate::remoting::timers::Due;
use crate::remoting::wire::Frame;
use crate::thread::contain;
use std::collections::hash_map::Entry;
use std::sync::Arc;

impl Reactor {
    /// Takes a new call into the table and sends it, or lets it wait for a connection.
    pub(super) fn begin_call(&mut self, mut call: Box<Call>, on: Option<ConnectionId>) {
        let error = if self.closing.is_some() {
            closed()
        } else if call.deadline.instant() <= self.now {
            count(&self.counters.timeouts);
            let text = format!("{} could not be sent within {:?}", describe(&call.command), call.timeout);
            Error::new(ErrorKind::Timeout, text)
        } else {
            let opaque = call.command.opaque;
            match self.calls.entry(opaque) {
                Entry::Vacant(place) => {
                    call.timer = Some(self.timers.add(call.deadline.instant(), Due::Call(opaque)));
                    place.insert(call);
                    match on {
                        Some(id) => self.send_call(opaque, id),
                        None => self.place_call(opaque),
                    }
                    return;
                }
                Entry::Occupied(_) => Error::new(ErrorKind::Busy, "a call with this number is still open"),
            }
        };
        self.complete(call, Err(error));
    }

    /// Queues a call on a connection.
    pub(super) fn send_call(&mut self, opaque: i32, id: ConnectionId) {
        let Some(call) = self.calls.get_mut(&opaque) else { return };
        let Some(link) = self.links.get_mut(&id) else {
            return self.fail_call(opaque, Error::new(ErrorKind::Closed, "the connection is closed"));
        };
        // A heartbeat is what the hooks send themselves; it must not wait for them.
        if link.greeting && call.moved && call.command.code != RequestCode::HEART_BEAT.value() {
            call.place = Place::Held(id);
            link.held.push(opaque);
            link.owed += 1;
            return;
        }
        let Some(head) = call.head.take() else { return };
        let frame = Frame { head, body: call.command.body.clone() };
        if let Err(error) = self.transmit(id, frame) {
            return self.fail_call(opaque, error);
        }
        let sent = Place::Sent(id, self.now);
        if let (Some(call), Some(link)) = (self.calls.get_mut(&opaque), self.links.get_mut(&id)) {
            call.place = sent;
            link.owed += 1;
        }
    }

    /// The hooks of a new connection have run: calls that waited for them follow.
    pub(super) fn on_greeted(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.greeting = false;
        let held = std::mem::take(&mut link.held);
        for opaque in held {
            if let Some(call) = self.calls.get_mut(&opaque).filter(|call| call.place == Place::Held(id)) {
                call.place = Place::Waiting;
                if let Some(link) = self.links.get_mut(&id) {
                    link.owed -= 1;
                }
                self.send_call(opaque, id);
            }
        }
    }

    /// Takes a call out of all tables.
    fn take_call(&mut self, opaque: i32) -> Option<Box<Call>> {
        let call = self.calls.remove(&opaque)?;
        self.timers.remove(call.timer);
        if let Some(id) = call.place.connection()
            && let Some(link) = self.links.get_mut(&id)
        {
            link.owed -= 1;
            if link.draining && link.owed == 0 {
                self.mark_dirty(id); // closed when it has written all
            }
        }
        Some(call)
    }

    /// Ends a call with an error.
    pub(super) fn fail_call(&mut self, opaque: i32, error: Error) {
        if let Some(call) = self.take_call(opaque) {
            self.complete(call, Err(error));
        }
    }

    fn complete(&self, call: Box<Call>, outcome: Result<RemotingCommand, Error>) {
        let Call { completion, address, .. } = *call;
        let outcome = outcome.map_err(|error| match address {
            Some(address) => error.with_address(&*address),
            None => error,
        });
        completion.complete(outcome, &self.dispatcher);
    }

    pub(super) fn on_call_overdue(&mut self, opaque: i32) {
        let Some(call) = self.take_call(opaque) else { return };
        count(&self.counters.timeouts);
        let (what, timeout) = (describe(&call.command), call.timeout);
        let error = match call.place {
            Place::Waiting => {
                // Nothing was sent, and the caller may count on that.
                let text = format!("no connection for {what} within {timeout:?}");
                let cause = call
                    .address
                    .as_ref()
                    .and_then(|address| self.peers.get(address))
                    .and_then(|peer| peer.last_error.clone());
                match cause {
                    Some(cause) => {
                        Error::new(ErrorKind::Connect, format!("{text}; the last attempt: {cause}")).with_source(cause)
                    }
                    None => Error::new(ErrorKind::Connect, text),
                }
            }
            // The first peer refused it and the second has not seen it.
            Place::Held(_) => {
                Error::new(ErrorKind::Connect, format!("{what} could not be sent again within {timeout:?}"))
            }
            Place::Sent(..) => Error::new(ErrorKind::Timeout, format!("no answer to {what} within {timeout:?}")),
        };
        let place = call.place;
        self.complete(call, Err(error));
        if let Place::Sent(id, since) = place {
            self.suspect(id, since);
        }
    }

    pub(super) fn on_response(&mut self, id: ConnectionId, response: RemotingCommand) {
        let waits =
            self.calls.get(&response.opaque).is_some_and(|call| matches!(call.place, Place::Sent(on, _) if on == id));
        let call = if waits { self.take_call(response.opaque) } else { None };
        let Some(call) = call else {
            count(&self.counters.late_answers);
            log::trace!("connection {id}: dropped {}, which nobody waits for", describe(&response));
            return;
        };
        match &call.address {
            Some(address) if response.response_code() == ResponseCode::GO_AWAY => {
                let address = Arc::clone(address);
                self.on_go_away(id, &address, call, response);
            }
            _ => self.complete(call, Ok(response)),
        }
    }

    /// The peer behind this connection is about to leave: the call is sent once more over a new connection to the same
    /// address, with all its fields and the same deadline, and the old connection stays for the answers still owed.
    fn on_go_away(&mut self, id: ConnectionId, address: &Arc<str>, mut call: Box<Call>, response: RemotingCommand) {
        self.retire_gently(id, address);
        if call.moved {
            let remark = response.remark.unwrap_or_default();
            let error = Error::broker(response.code, remark).context("the peer is going away, and so is the next one");
            return self.complete(call, Err(error));
        }
        call.moved = true;
        call.place = Place::Waiting;
        call.command.opaque = crate::protocol::new_opaque();
        match encode(&call.command, self.config.max_frame) {
            Ok(head) => {
                call.head = Some(head);
                self.begin_call(call, None);
            }
            Err(error) => self.complete(call, Err(error)),
        }
    }

    /// A request of the peer.
    pub(super) fn on_request(&mut self, id: ConnectionId, request: RemotingCommand) {
        if self.closing.is_some() {
            return; // nobody is there to answer it; the peer sees the connection end
        }
        let Some(handle) = self.links.get(&id).and_then(|link| link.handle.clone()) else { return };
        let asked = Asked::of(&request);
        if !self.processor.accepts(request.request_code()) {
            log::debug!("connection {id}: {} is not served", describe(&request));
            self.answer(id, asked, Some(unsupported(request.request_code())));
        } else if self.dispatcher.is_inline() {
            let answer = process(&*self.processor, &self.counters, &handle, request);
            self.answer(id, asked, answer);
        } else {
            let (processor, counters) = (Arc::clone(&self.processor), Arc::clone(&self.counters));
            let max_frame = self.config.max_frame;
            let queued = self.dispatcher.run_request(move || {
                let answer = process(&*processor, &counters, &handle, request);
                let Some((_, answer)) = asked.answer(answer, max_frame) else { return };
                if let Err(error) = handle.send(answer) {
                    log::debug!("an answer could not be sent: {error}");
                }
            });
            if !queued {
                self.answer(id, asked, Some(overloaded()));
            }
        }
    }

    /// Queues the answer of a request on its connection.
    fn answer(&mut self, id: ConnectionId, asked: Asked, answer: Option<RemotingCommand>) {
        let Some((head, answer)) = asked.answer(answer, self.config.max_frame) else { return };
        if let Err(error) = self.transmit(id, Frame { head, body: answer.body }) {
            // A peer that asks and does not read.
            self.close_link(id, error);
        }
    }
}

/// What an answer needs of its request.
#[derive(Clone, Copy)]
struct Asked {
    opaque: i32,
    oneway: bool,
}

impl Asked {
    fn of(request: &RemotingCommand) -> Self {
        Self { opaque: request.opaque, oneway: request.is_oneway() }
    }

    /// Makes it the answer of this request, with its encoded head; nothing when none is wanted. An answer that is too
    /// large for a frame becomes one that says so, because the requester must not wait in vain.
    fn answer(self, answer: Option<RemotingCommand>, max_frame: usize) -> Option<(Vec<u8>, RemotingCommand)> {
        let mut answer = answer.filter(|_| !self.oneway)?;
        loop {
            answer.opaque = self.opaque;
            answer.flag = 1; // a response, and no other bit
            match encode(&answer, max_frame) {
                Ok(head) => return Some((head, answer)),
                Err(error) if answer.body.is_empty() => {
                    log::error!("a request stays without answer: {error}");
                    return None;
                }
                Err(error) => {
                    log::error!("{error}");
                    answer = RemotingCommand::response(ResponseCode::SYSTEM_ERROR, Some(error.to_string()));
                }
            }
        }
    }
}

fn process(
    processor: &dyn RequestProcessor,
    counters: &Counters,
    connection: &ConnectionHandle,
    request: RemotingCommand,
) -> Option<RemotingCommand> {
    let code = request.request_code();
    match contain(|| processor.process(connection, request)) {
        Ok(answer) => answer,
        Err(panic) => {
            count(&counters.panics);
            log::error!("the processor of {code:?} panicked: {panic}");
            Some(failed(&panic))
        }
    }
}
