//! What a pull request should do now. Pure. Source: 02-consumer 7.2.

use crate::api::pull::PullResult;
use std::time::Duration;

/// Where to go on after a broker refused an offset.
///
/// Above the end: the end the answer reports, never what it proposes, since some brokers propose 0 (field report 20).
/// Below the start: the start. Inside: an operator reset the offset, and the proposal is the new one.
pub(crate) fn correct_offset(asked: i64, answer: &PullResult) -> i64 {
    let (min, max) = (answer.min_offset.max(0), answer.max_offset.max(0));
    if asked > max {
        max
    } else if asked < min {
        min
    } else {
        answer.next_begin_offset.clamp(min, max.max(min))
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
        assert_eq!(correct_offset(500, &answer(0, 0, 498)), 498);
        assert_eq!(correct_offset(500, &answer(498, 10, 498)), 498);
    }

    #[test]
    fn an_offset_below_the_start_goes_to_the_start() {
        assert_eq!(correct_offset(3, &answer(100, 100, 200)), 100);
    }

    #[test]
    fn an_operator_s_reset_is_followed() {
        assert_eq!(correct_offset(150, &answer(20, 0, 200)), 20);
        assert_eq!(correct_offset(150, &answer(-7, 0, 200)), 0);
    }

    #[test]
    fn a_queue_that_was_made_anew_begins_at_its_end() {
        assert_eq!(correct_offset(150, &answer(0, 0, 0)), 0);
        assert_eq!(correct_offset(150, &answer(0, -1, -1)), 0);
    }

    #[test]
    fn pauses_double_and_are_bounded() {
        let pause = |failures| back_off(failures, Duration::from_millis(100), Duration::from_secs(1)).as_millis();
        assert_eq!([0, 1, 2, 3, 4, 5, 40].map(pause), [100, 100, 200, 400, 800, 1000, 1000]);
    }
}
