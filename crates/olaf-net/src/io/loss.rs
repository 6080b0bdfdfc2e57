//! Loss on purpose, for tests and experiments: the kernel of a test machine may have none to offer.

use crate::error::StartError;
use crate::random;
use serde::{Deserialize, Serialize};

/// Received datagrams that a socket throws away: the same ones for the same seed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveLoss {
    /// The share of the datagrams, from 0 to 1.
    pub probability: f64,
    /// Random seed.
    pub seed: u64,
}

impl ReceiveLoss {
    /// The same, where the share is one.
    pub(crate) fn check(self) -> Result<Self, StartError> {
        if (0.0..=1.0).contains(&self.probability) {
            return Ok(self);
        }
        Err(StartError::Config(format!(
            "receive_loss.probability = {}: must be from 0 to 1",
            self.probability
        )))
    }

    /// Returns true if it loses the datagram that came as number `number` since the start.
    pub(crate) fn takes(&self, number: u64) -> bool {
        random::uniform(self.seed, number) < self.probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_loses_the_same_datagrams_as_many_as_were_wished_for() {
        let lost = |probability, seed| {
            let loss = ReceiveLoss { probability, seed };
            (0..10_000).filter(|number| loss.takes(*number)).collect::<Vec<_>>()
        };
        assert_eq!(lost(0.1, 7), lost(0.1, 7));
        assert_ne!(lost(0.1, 7), lost(0.1, 8));
        assert!((900..1100).contains(&lost(0.1, 7).len()), "{}", lost(0.1, 7).len());
        assert_eq!((lost(0.0, 7).len(), lost(1.0, 7).len()), (0, 10_000));
    }

    #[test]
    fn a_share_above_one_names_its_key() {
        for probability in [-0.1, 1.1, f64::NAN] {
            let wrong = ReceiveLoss { probability, seed: 1 }.check().expect_err("no share");
            assert!(wrong.to_string().contains("receive_loss.probability"), "{wrong}");
        }
    }
}
