//! What a pull request should do now. Pure. Source: 02-consumer 7.2.

use crate::api::pull::PullResult;
use std::time::Duration;

/// What to do after a broker refused an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Correction {
    /// Pulls go on at this offset; what was pulled before stays and is finished.
    GoOnAt(i64),
    /// What was pulled before is of no use: a new ownership begins at this offset.
    RestartAt(i64),
}

/// Where to go on after a broker refused an offset; `lowest` is the lowest one that is not finished.
///
/// Above the end: the end the answer reports, never what it proposes, since some brokers propose 0 (field report 20),
/// and not behind what is unfinished, which would be lost. Below the start: the start; what was pulled before the
/// broker deleted it is still delivered. Inside: an operator reset the offset, and the proposal is the new one.
pub(crate) fn correct(asked: i64, lowest: i64, answer: &PullResult) -> Correction {
    let (min, max) = (answer.min_offset.max(0), answer.max_offset.max(0));
    if asked > max {
        return Correction::RestartAt(max.min(lowest));
    }
    if asked < min {
        return Correction::GoOnAt(min);
    }
    match answer.next_begin_offset.clamp(min, max) {
        same if same == asked => Correction::GoOnAt(asked),
        reset => Correction::RestartAt(reset),
    }
}

/// A pause that doubles with each failure in a row, from `first` to `most`.
pub(crate) fn back_off(failures: u32, first: Duration, most: Duration) -> Duration {
    first.saturating_mul(1u32 << failures.saturating_sub(1).min(16)).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::pull::PullStatus;

    fn answer(next: i64, min: i64, max: i64) -> PullResult {
        PullResult {
            status: PullStatus::OffsetIllegal,
            next_begin_offset: next,
            min_offset: min,
            max_offset: max,
            suggest_which_broker_id: 0,
            offset_delta: 0,
            body: bytes::Bytes::new(),
        }
    }

    #[test]
    fn an_offset_above_the_end_goes_to_the_end_and_never_to_the_start() {
        assert_eq!(correct(500, 500, &answer(0, 0, 498)), Correction::RestartAt(498));
        assert_eq!(correct(500, 500, &answer(498, 10, 498)), Correction::RestartAt(498));
        assert_eq!(correct(500, 490, &answer(0, 0, 498)), Correction::RestartAt(490), "10 of them are unfinished");
    }

    #[test]
    fn an_offset_below_the_start_goes_to_the_start() {
        assert_eq!(correct(3, 0, &answer(100, 100, 200)), Correction::GoOnAt(100));
        assert_eq!(correct(3, 0, &answer(0, i64::MAX, i64::MAX)), Correction::GoOnAt(i64::MAX));
    }

    #[test]
    fn an_operator_s_reset_is_followed() {
        assert_eq!(correct(150, 100, &answer(20, 0, 200)), Correction::RestartAt(20));
        assert_eq!(correct(150, 100, &answer(-7, 0, 200)), Correction::RestartAt(0));
        assert_eq!(correct(150, 100, &answer(180, 0, 200)), Correction::RestartAt(180));
    }

    #[test]
    fn a_refusal_that_proposes_what_was_asked_for_throws_nothing_away() {
        assert_eq!(correct(150, 100, &answer(150, 0, 200)), Correction::GoOnAt(150));
    }

    #[test]
    fn a_queue_that_was_made_anew_begins_at_its_end() {
        assert_eq!(correct(150, 150, &answer(0, 0, 0)), Correction::RestartAt(0));
        assert_eq!(correct(150, 150, &answer(0, -1, -1)), Correction::RestartAt(0));
    }

    #[test]
    fn pauses_double_and_are_bounded() {
        let pause = |failures| back_off(failures, Duration::from_millis(100), Duration::from_secs(1)).as_millis();
        assert_eq!([0, 1, 2, 3, 4, 5, 40].map(pause), [100, 100, 200, 400, 800, 1000, 1000]);
    }
}
