//! How a control message is read.

use super::offsets::{
    LONGEST_CONTROL, MAX_INDEX, MAX_WORKERS, VERSION, ack, control, halt, join, leave, packets,
    set_h,
};
use super::values::{Ack, Admission, Control, Halt, Join, Leave, Packets};
use super::verbs::{Action, Outcome, Sender};
use crate::ids::{JobId, Session};
use crate::packet::{Refusal, array_at};
use crate::reduce::Reason;

impl Control {
    /// Reads `bytes`, one whole datagram of [`CONTROL_CLASS`](super::CONTROL_CLASS).
    ///
    /// # Errors
    /// The [`Refusal`] that says what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let have = bytes.len();
        let Some(action) = bytes.first() else {
            return Err(Refusal::Truncated { have, need: control::LEN });
        };
        let action = Action::from_byte(*action).ok_or(Refusal::UnknownKind(*action))?;
        let need = match action {
            Action::Join if have > join::LEN => join::LEN_WITH_NONCE,
            Action::Join => join::LEN,
            Action::Leave => leave::LEN,
            Action::Reset => control::LEN,
            Action::SetH => set_h::LEN,
            Action::FBcast | Action::Help => packets::LEN,
            Action::Halt => halt::LEN,
            Action::Ack if bytes.get(control::WHAT) == Some(&(Action::Join as u8)) => {
                if have > ack::LEN_OF_JOIN { ack::LEN_WITH_NONCE } else { ack::LEN_OF_JOIN }
            }
            Action::Ack => ack::LEN,
        };
        if have < need {
            return Err(Refusal::Truncated { have, need });
        }
        if have > need {
            return Err(Refusal::Oversized { have, need });
        }
        let message = Value(bytes).read(action)?;
        // Written again, a message has the same bytes: none hides in a place without a field.
        let mut again = [0; LONGEST_CONTROL];
        if message.emit(&mut again) == have && &again[..have] == bytes {
            Ok(message)
        } else {
            Err(Refusal::BadField("unused"))
        }
    }
}

/// The sender's life in a join of another version: the answer can then name it.
#[must_use]
pub fn join_of_another_version(bytes: &[u8]) -> Option<Session> {
    let is_join = bytes.first() == Some(&(Action::Join as u8)) && bytes.len() >= leave::LEN;
    let other = is_join && bytes[control::CODE] != VERSION;
    other.then(|| Session(u32::from_be_bytes(array_at(bytes, join::SESSION))))
}

/// The job that a control message names: only joins and leaves have room for it.
#[must_use]
pub fn job_of(bytes: &[u8]) -> Option<u32> {
    let names = [Action::Join as u8, Action::Leave as u8];
    let job = bytes.get(leave::JOB..leave::JOB + 4).filter(|_| names.contains(&bytes[0]))?;
    Some(u32::from_be_bytes(job.try_into().ok()?))
}

/// The generation of a control message.
#[must_use]
pub fn generation_of(bytes: &[u8]) -> Option<u8> {
    bytes.get(control::GENERATION).copied()
}

/// A datagram that is as long as its action asks for.
struct Value<'a>(&'a [u8]);

impl Value<'_> {
    fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(array_at(self.0, at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_be_bytes(array_at(self.0, at))
    }

    /// The nonce that a message ends with; 0: it has none.
    fn nonce(&self, at: usize) -> u32 {
        if self.0.len() > at { self.u32(at) } else { 0 }
    }

    fn read(&self, action: Action) -> Result<Control, Refusal> {
        let generation = self.0[control::GENERATION];
        Ok(match action {
            Action::Join => Control::Join(self.join(generation)?),
            Action::Leave => Control::Leave(Leave {
                generation,
                job: JobId(self.u32(leave::JOB)),
                session: Session(self.u32(leave::SESSION)),
            }),
            Action::Reset => Control::Reset { generation },
            Action::SetH => {
                let h = self.u32(set_h::H);
                if h == 0 || h > MAX_WORKERS {
                    return Err(Refusal::BadField("h"));
                }
                Control::SetH { generation, h }
            }
            Action::FBcast => Control::FBcast(self.packets(generation)?),
            Action::Help => Control::Help(self.packets(generation)?),
            Action::Halt => {
                let code = self.0[control::CODE];
                let reason = Reason::EACH.into_iter().find(|reason| *reason as u8 == code);
                Control::Halt(Halt {
                    generation,
                    reason: reason.ok_or(Refusal::BadField("reason"))?,
                    culprit: self.u32(halt::CULPRIT),
                    index: self.u64(halt::INDEX) & halt::INDEX_MASK,
                    calls: self.0[halt::CALLS],
                })
            }
            Action::Ack => Control::Ack(self.ack(generation)?),
        })
    }

    fn join(&self, generation: u8) -> Result<Join, Refusal> {
        let version = self.0[control::CODE];
        if version != VERSION {
            return Err(Refusal::WrongVersion { have: version, speaks: VERSION });
        }
        let message = Join {
            generation,
            sender: match self.0[control::WHAT] {
                0 => Sender::Worker,
                1 => Sender::Switch,
                _ => return Err(Refusal::BadField("sender")),
            },
            job: JobId(self.u32(join::JOB)),
            session: Session(self.u32(join::SESSION)),
            rank: self.u32(join::RANK),
            workers: self.u32(join::WORKERS),
            contributors: self.u32(join::CONTRIBUTORS),
            packet_floats: self.u32(join::PACKET_FLOATS),
            operations: self.u32(join::OPERATIONS),
            program: self.u32(join::PROGRAM),
            nonce: self.nonce(join::NONCE),
        };
        if !(1..=MAX_WORKERS).contains(&message.workers) {
            return Err(Refusal::BadField("workers"));
        }
        if !(1..=message.workers).contains(&message.contributors) {
            return Err(Refusal::BadField("contributors"));
        }
        if message.packet_floats == 0 {
            return Err(Refusal::BadField("packet_floats"));
        }
        Ok(message)
    }

    fn packets(&self, generation: u8) -> Result<Packets, Refusal> {
        let message = Packets {
            generation,
            sent_at_us: self.u32(packets::SENT_AT_US),
            index: self.u64(packets::INDEX),
            mask: self.u64(packets::MASK),
        };
        if message.index > MAX_INDEX - u64::from(u64::BITS) {
            return Err(Refusal::BadField("index"));
        }
        Ok(message)
    }

    fn ack(&self, generation: u8) -> Result<Ack, Refusal> {
        let action = Action::from_byte(self.0[control::WHAT]).ok_or(Refusal::BadField("action"))?;
        let outcome =
            Outcome::from_byte(self.0[control::CODE]).ok_or(Refusal::BadField("outcome"))?;
        let admission = (action == Action::Join).then(|| Admission {
            member: self.u32(ack::MEMBER),
            rank: self.u32(ack::RANK),
            workers: self.u32(ack::WORKERS),
            here: self.u32(ack::HERE),
            slots: self.u32(ack::SLOTS),
            packet_floats: self.u32(ack::PACKET_FLOATS),
            operations: self.u32(ack::OPERATIONS),
            session: Session(self.u32(ack::SESSION)),
            nonce: self.nonce(ack::NONCE),
        });
        let index = self.u64(ack::INDEX);
        if index > MAX_INDEX {
            return Err(Refusal::BadField("index"));
        }
        let sent_at_us = self.u32(ack::SENT_AT_US);
        Ok(Ack { generation, action, outcome, sent_at_us, index, admission })
    }
}
