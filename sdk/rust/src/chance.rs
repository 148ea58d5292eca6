//! Numbers by chance, for waits and names.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

/// Any number.
pub(crate) fn number() -> u16 {
    let [first, second, ..] = RandomState::new().hash_one(0).to_ne_bytes();
    u16::from_ne_bytes([first, second])
}

/// A number from 0 to 1.
pub(crate) fn fraction() -> f64 {
    f64::from(number()) / f64::from(u16::MAX)
}
