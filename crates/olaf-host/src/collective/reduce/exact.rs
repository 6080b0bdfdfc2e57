//! Order-free sums: f32 lanes that travel as integers, so that the same inputs have the same result,
//! bit by bit.
//!
//! An order-free sum is two operations on the wire. The first is the maximum of the exponents of all
//! workers, one for each block. The second is the sum of the lanes, each block at the scale of its
//! exponent ([`fixed`]). Both have their numbers from the beginning; the end sends the lanes when it
//! has all exponents.
//!
//! SwitchML and ATP know one scale for the whole job instead, which the program chooses. Such a sum
//! has no exponents.

use alloc::vec::Vec;
use core::ops::Range;
use olaf_engine::lanes::fixed::{self, Scale};

/// Bytes of an exponent, which travels as an integer of 32 bits, and of a lane.
const BYTES: usize = 4;

/// The scales of an operation whose lanes travel as integers.
#[derive(Debug)]
pub(super) struct Exact {
    /// Of this end's lanes, by block.
    own: Vec<i16>,
    /// The same as lanes of the first operation; the largest of all workers once its results are
    /// here.
    lanes: Vec<u8>,
    /// The scale of all blocks, where there are no exponents.
    scale: Option<f64>,
    workers: u32,
    /// Lanes of one block as numbers. A program's memory may have any alignment.
    numbers: Vec<f32>,
}

impl Exact {
    /// The exponents of these lanes in blocks of `block_bytes` bytes.
    pub(super) fn new(lanes: &[u8], block_bytes: usize, workers: u32) -> Self {
        let mut exact = Self { workers, ..Self::scaled(None) };
        for block in lanes.chunks(block_bytes) {
            exact.read(block);
            exact.own.push(fixed::exponent_of(&exact.numbers));
        }
        let own = exact.own.iter().flat_map(|exponent| i32::from(*exponent).to_le_bytes());
        exact.lanes = own.collect();
        exact
    }

    /// The same scale for all blocks.
    pub(super) const fn scaled(scale: Option<f64>) -> Self {
        Self { own: Vec::new(), lanes: Vec::new(), scale, workers: 1, numbers: Vec::new() }
    }

    /// The exponents as lanes.
    pub(super) fn lanes(&self) -> &[u8] {
        &self.lanes
    }

    /// Takes in the largest exponents of some blocks. `workers` belong into the sum, in the whole
    /// tree of switches.
    pub(super) fn take(&mut self, range: Range<usize>, largest: &[u8], workers: u32) {
        self.workers = workers;
        if let Some(lanes) = self.lanes.get_mut(range) {
            lanes.copy_from_slice(largest);
        }
    }

    fn exponent(&self, block: usize) -> i16 {
        let lane =
            self.lanes.as_chunks::<BYTES>().0.get(block).map(|lane| i32::from_le_bytes(*lane));
        // Only a broken message has an exponent outside these bounds.
        let bounds = (i32::from(fixed::ZERO), i32::from(fixed::NOT_FINITE));
        let exponent = lane.unwrap_or_default().clamp(bounds.0, bounds.1);
        i16::try_from(exponent).unwrap_or(fixed::NOT_FINITE)
    }

    /// Returns true if this end's lanes of a block fit its scale. They do not where the first
    /// operation went without this worker.
    pub(super) fn fits(&self, block: usize) -> bool {
        self.scale.is_some() || self.own.get(block).is_some_and(|own| *own <= self.exponent(block))
    }

    /// Returns true if this end's lanes of a block are all numbers.
    pub(super) fn is_finite(&self, block: usize) -> bool {
        self.scale.is_some() || self.own.get(block).is_some_and(|own| *own != fixed::NOT_FINITE)
    }

    /// Writes the lanes of a block as integers.
    pub(super) fn write(&mut self, block: usize, lanes: &[u8], out: &mut [u8]) {
        self.read(lanes);
        if let Some(scale) = self.scale {
            for (out, lane) in out.as_chunks_mut::<BYTES>().0.iter_mut().zip(&self.numbers) {
                // Too large a lane becomes the largest integer; no number becomes 0.
                *out = (libm::rint(f64::from(*lane) * scale) as i32).to_le_bytes();
            }
        } else {
            Scale::new(self.exponent(block), self.workers).quantize(&self.numbers, out);
        }
    }

    /// Reads the sum of a block, divided by that number.
    pub(super) fn sum(&mut self, block: usize, sum: &[u8], by: u32, to: &mut [u8]) {
        self.numbers.resize(sum.len() / BYTES, 0.0);
        if let Some(scale) = self.scale {
            for (lane, sum) in self.numbers.iter_mut().zip(sum.as_chunks::<BYTES>().0) {
                *lane = (f64::from(i32::from_le_bytes(*sum)) / scale) as f32;
            }
        } else {
            let scale = Scale::new(self.exponent(block), self.workers);
            scale.dequantize(sum, &mut self.numbers);
        }
        let by = by as f32;
        for (to, lane) in to.as_chunks_mut::<BYTES>().0.iter_mut().zip(&self.numbers) {
            *to = (lane / by).to_le_bytes();
        }
    }

    fn read(&mut self, lanes: &[u8]) {
        let lanes = lanes.as_chunks::<BYTES>().0;
        self.numbers.clear();
        self.numbers.extend(lanes.iter().map(|lane| f32::from_le_bytes(*lane)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(lanes: &[f32]) -> Vec<u8> {
        lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect()
    }

    fn integers(bytes: &[u8]) -> Vec<i32> {
        bytes.as_chunks().0.iter().map(|lane| i32::from_le_bytes(*lane)).collect()
    }

    #[test]
    fn the_sum_of_the_integers_is_the_sum_of_the_lanes() {
        let own = [bytes(&[1.0, -2.5, 1000.0]), bytes(&[0.25, 2.5, -8.0])];
        let mut ends = own.each_ref().map(|lanes| Exact::new(lanes, 8, 2));
        assert_eq!(integers(ends[0].lanes()), [2, 10], "two blocks: below 4, and below 1024");
        assert_eq!(integers(ends[1].lanes()), [2, 4]);
        let largest: Vec<u8> = [2i32, 10].iter().flat_map(|lane| lane.to_le_bytes()).collect();
        ends.iter_mut().for_each(|end| end.take(0..8, &largest, 2));
        let mut sum = [0; 8];
        let mut parts = [[0; 8]; 2];
        for (end, (own, part)) in ends.iter_mut().zip(own.iter().zip(&mut parts)) {
            end.write(0, &own[..8], part);
        }
        for (at, sum) in sum.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let lane = |part: &[u8; 8]| integers(part)[at];
            *sum = (lane(&parts[0]) + lane(&parts[1])).to_le_bytes();
        }
        let mut result = [0; 8];
        ends[1].sum(0, &sum, 1, &mut result);
        assert_eq!(result[..], bytes(&[1.25, 0.0])[..]);
        ends[0].sum(0, &sum, 2, &mut result);
        assert_eq!(result[..], bytes(&[0.625, 0.0])[..], "the mean");
    }

    #[test]
    fn lanes_above_the_scale_are_not_sent() {
        let mut end = Exact::new(&bytes(&[1000.0]), 8, 2);
        assert!(end.fits(0));
        // The first operation went without this worker.
        end.take(0..4, &3i32.to_le_bytes(), 2);
        assert!(!end.fits(0));
    }

    #[test]
    fn lanes_that_are_no_numbers_make_the_result_none() {
        let mut end = Exact::new(&bytes(&[f32::INFINITY, 1.0]), 8, 2);
        assert!(!end.is_finite(0));
        let mut result = [0; 8];
        end.sum(0, &[0; 8], 1, &mut result);
        assert!(result.as_chunks().0.iter().all(|lane| f32::from_le_bytes(*lane).is_nan()));
    }

    #[test]
    fn a_job_may_have_one_scale() {
        let mut end = Exact::scaled(Some(100.0));
        assert!(end.lanes().is_empty() && end.fits(7) && end.is_finite(7));
        let mut part = [0; 12];
        end.write(0, &bytes(&[1.234, -0.5, 1e30]), &mut part);
        assert_eq!(integers(&part), [123, -50, i32::MAX]);
        let mut mean = [0; 12];
        end.sum(0, &part, 2, &mut mean);
        assert_eq!(mean[..8], bytes(&[0.615, -0.25])[..]);
    }

    #[test]
    fn exponents_of_a_broken_message_do_no_harm() {
        let mut end = Exact::new(&bytes(&[1.0]), 8, 2);
        for exponent in [i32::MIN, i32::MAX, -150, 32_768] {
            end.take(0..4, &exponent.to_le_bytes(), 2);
            let mut out = [0; 4];
            end.write(0, &1.0f32.to_le_bytes(), &mut out);
            end.sum(0, &[1; 4], 1, &mut out);
        }
    }
}
