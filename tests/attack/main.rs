//! Attacks: peers that misbehave, the situations of the field reports, and a misused API.

mod fake;
mod fields_commit;
mod fields_membership;
mod fields_order;
mod fields_pull;
mod fields_retry;
mod filters;
mod hostile_frames;
mod hostile_messages;
mod misuse;
mod resets;
mod silent;
