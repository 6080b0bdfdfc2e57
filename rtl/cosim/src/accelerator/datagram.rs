//! A datagram, and its beats.

use crate::ends::Beats;

/// What moves in a cycle: 8 words or 16, the first byte lowest; which bytes count; and tuser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beat {
    pub(super) data: [u32; 16],
    pub(super) keep: u64,
    pub(super) user: u16,
}

/// Bytes with what tuser says of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) body: Vec<u8>,
    /// The receivers, a bit each; or the sender's bit.
    pub(super) ports: u16,
    pub(super) control: bool,
    /// The path was congested (ECN).
    pub(super) marked: bool,
    /// The control plane sent it. Datagrams that leave do not say so.
    pub(super) confirmed: bool,
}

/// A datagram that goes in, beat by beat.
pub(super) struct Offered {
    pub(super) datagram: Datagram,
    beats: Vec<Beat>,
}

impl Beats for Offered {
    type Beat = Beat;

    fn beats(&self) -> &[Beat] {
        &self.beats
    }
}

/// How a build cuts datagrams into beats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Ports of the build.
    pub(super) ports: usize,
    /// Bytes of a beat: 32 or 64.
    pub(super) bytes: usize,
}

impl Shape {
    /// Bits of a port's number: `PORT`.
    fn port_bits(self) -> u32 {
        self.ports.next_power_of_two().trailing_zeros()
    }

    fn keep(self, bytes: usize) -> u64 {
        if bytes >= 64 { u64::MAX } else { (1 << bytes) - 1 }
    }

    /// The beats of a datagram from one port. The bytes behind the last one are `padding`. An empty datagram has
    /// a beat that keeps no byte.
    pub(super) fn offer(self, datagram: Datagram, padding: u8) -> Offered {
        let bits = self.port_bits();
        let port = datagram.ports.trailing_zeros() as u16;
        let bit = |is: bool, place: u32| u16::from(is) << place;
        let user = bit(datagram.confirmed, bits + 2)
            | bit(datagram.marked, bits + 1)
            | bit(datagram.control, bits)
            | port;
        let beat = |bytes: &[u8]| {
            let mut whole = [padding; 64];
            whole[..bytes.len()].copy_from_slice(bytes);
            let mut data = [0; 16];
            for (word, bytes) in data.iter_mut().zip(whole[..self.bytes].chunks_exact(4)) {
                *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
            Beat { data, keep: self.keep(bytes.len()), user }
        };
        let beats = if datagram.body.is_empty() {
            vec![beat(&[])]
        } else {
            datagram.body.chunks(self.bytes).map(beat).collect()
        };
        Offered { datagram, beats }
    }

    /// The datagram of beats that left.
    pub(super) fn left(self, beats: &[Beat]) -> Result<Datagram, String> {
        let mut body = Vec::new();
        for (number, beat) in beats.iter().enumerate() {
            let kept = beat.keep.trailing_ones() as usize;
            let whole = kept == self.bytes || (number + 1 == beats.len() && kept > 0);
            if beat.keep != self.keep(kept) || !whole || beat.user != beats[0].user {
                return Err(format!("beat {number} of {} leaves as {beat:?}", beats.len()));
            }
            let bytes: Vec<u8> = beat.data.iter().flat_map(|word| word.to_le_bytes()).collect();
            body.extend_from_slice(&bytes[..kept]);
        }
        let user = beats[0].user;
        Ok(Datagram {
            body,
            ports: user & ((1 << self.ports) - 1),
            control: user >> self.ports & 1 == 1,
            marked: user >> (self.ports + 1) & 1 == 1,
            confirmed: false,
        })
    }
}
