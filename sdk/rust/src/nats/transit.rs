use std::time::{Duration, Instant};

/// The time after which the server is asked once more when it does not answer.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// Bounds how long a message was on its way. The server does not tell when it sent one, and a network that fails for a while
/// delivers late what was sent before. But what arrives after something that the server said was sent after that, and what
/// arrives after the answer to a question was sent after the question (ADR 0012).
pub(super) struct Transit {
    /// A time before which none of the messages that are still to be read was sent.
    since: Instant,
    /// The messages that follow a silence may all have been sent in it: when the server was asked, and the question's number.
    doubted: Option<(Instant, u64)>,
    questions: u64,
    silence: Duration,
}

impl Transit {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, doubted: None, questions: 0, silence: Duration::MAX }
    }

    /// Notes that a pull was sent: its messages come after that. For `silence` at most, the server says nothing on a network
    /// that is well.
    pub(super) fn asked(&mut self, now: Instant, silence: Duration) {
        self.silence = silence;
        if self.doubted.is_none() {
            self.since = now;
        }
    }

    /// The longest that a message which is read now may have been on its way, and the number of a question that is to be
    /// asked, if one is.
    pub(super) fn read(&mut self, now: Instant) -> (Duration, Option<u64>) {
        let longest = now.saturating_duration_since(self.since);
        let ask = match self.doubted {
            Some((at, _)) => now.saturating_duration_since(at) > ASK_AGAIN,
            None => longest > self.silence,
        };
        if ask {
            self.questions += 1;
            self.doubted = Some((now, self.questions));
        } else if self.doubted.is_none() {
            self.since = now;
        }
        (longest, ask.then_some(self.questions))
    }

    /// The answer to the question of that number was read.
    pub(super) fn answered(&mut self, question: u64) {
        if let Some((at, last)) = self.doubted
            && last == question
        {
            self.doubted = None;
            self.since = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn quiet(now: Instant) -> Transit {
        let mut transit = Transit::new(now);
        transit.asked(now, ms(2500));
        transit
    }

    #[test]
    fn a_message_is_as_old_as_the_last_sign_of_life() {
        let zero = Instant::now();
        let mut transit = quiet(zero);
        assert_eq!(transit.read(zero + ms(1000)), (ms(1000), None));
        assert_eq!(transit.read(zero + ms(1500)), (ms(500), None));
        transit.asked(zero + ms(3000), ms(2500));
        assert_eq!(transit.read(zero + ms(3100)), (ms(100), None));
    }

    #[test]
    fn what_ends_a_silence_may_be_as_old_as_it_until_the_server_answers() {
        let zero = Instant::now();
        let mut transit = quiet(zero);
        assert_eq!(transit.read(zero + ms(9000)), (ms(9000), Some(1)));
        assert_eq!(transit.read(zero + ms(9010)), (ms(9010), None));
        transit.asked(zero + ms(9015), ms(2500)); // proves nothing about what is before its answer
        assert_eq!(transit.read(zero + ms(9030)), (ms(9030), None));
        transit.answered(1);
        assert_eq!(transit.read(zero + ms(9040)), (ms(40), None));
        assert_eq!(transit.read(zero + ms(9050)), (ms(10), None));
    }

    #[test]
    fn a_question_that_is_not_answered_is_asked_again_and_its_answer_counts_no_more() {
        let zero = Instant::now();
        let mut transit = quiet(zero);
        assert_eq!(transit.read(zero + ms(9000)).1, Some(1));
        assert_eq!(transit.read(zero + ms(14_500)), (ms(14_500), Some(2)));
        transit.answered(1);
        assert_eq!(transit.read(zero + ms(14_600)).0, ms(14_600));
        transit.answered(2);
        assert_eq!(transit.read(zero + ms(14_700)).0, ms(200));
    }
}
