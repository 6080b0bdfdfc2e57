//! A protocol as the dissector knows it: its messages and their fields, as plain data.

/// How the bytes of a field are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum As {
    Uint,
    Int,
    Double,
    Bytes,
    /// Some bits of the field's bytes; bit 0 is the highest of the first byte.
    Bits(usize, usize),
}

/// A field. A negative offset counts from the end of the message.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) at: isize,
    pub(crate) bytes: usize,
    pub(crate) read: As,
    /// Names of its values.
    pub(crate) names: Vec<(u64, &'static str)>,
}

/// A message of a protocol.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) name: &'static str,
    pub(crate) code: u64,
    pub(crate) fields: Vec<Field>,
    /// Its length in bytes, an expression of Lua; `u(at, bytes)` reads a number of the message, and
    /// `n` is the number of the datagram's bytes. Empty: the datagram's length.
    pub(crate) len: String,
    /// What follows the fields: its name, where it begins, and how many bytes follow it.
    pub(crate) rest: Option<(&'static str, String, usize)>,
}

/// A protocol.
#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// The first bytes of its datagrams, where they have any of their own.
    pub(crate) magic: Option<[u8; 4]>,
    /// Class of service (six DSCP bits) of its datagrams, where it has one.
    pub(crate) classes: Vec<u8>,
    /// Its usual UDP port.
    pub(crate) port: Option<u16>,
    /// Fields of all messages.
    pub(crate) common: Vec<Field>,
    /// The message's code, an expression of Lua; `dscp` is the class of service.
    pub(crate) code: String,
    pub(crate) messages: Vec<Message>,
}

pub(crate) fn uint(name: &'static str, at: usize, bytes: usize) -> Field {
    Field { name, at: at as isize, bytes, read: As::Uint, names: Vec::new() }
}

pub(crate) fn byte(name: &'static str, at: usize) -> Field {
    uint(name, at, 1)
}

pub(crate) fn u16(name: &'static str, at: usize) -> Field {
    uint(name, at, 2)
}

pub(crate) fn u32(name: &'static str, at: usize) -> Field {
    uint(name, at, 4)
}

pub(crate) fn u64(name: &'static str, at: usize) -> Field {
    uint(name, at, 8)
}

pub(crate) fn double(name: &'static str, at: usize) -> Field {
    Field { read: As::Double, ..u64(name, at) }
}

pub(crate) fn bytes(name: &'static str, at: usize, bytes: usize) -> Field {
    Field { read: As::Bytes, ..uint(name, at, bytes) }
}

/// The bits of a mask in a field of `bytes` bytes.
pub(crate) fn bits(name: &'static str, at: usize, bytes: usize, mask: u64) -> Field {
    let from_the_left = mask.leading_zeros() as usize - (64 - 8 * bytes);
    let read = As::Bits(from_the_left, mask.count_ones() as usize);
    Field { read, ..uint(name, at, bytes) }
}

impl Field {
    pub(crate) fn with_names<T>(
        mut self,
        each: &[T],
        of: impl Fn(&T) -> (u64, &'static str),
    ) -> Self {
        self.names = each.iter().map(of).collect();
        self
    }

    pub(crate) fn signed(mut self) -> Self {
        self.read = As::Int;
        self
    }

    pub(crate) fn counted_back(mut self) -> Self {
        self.at = -self.at;
        self
    }
}

impl Message {
    /// A message of a fixed length.
    pub(crate) fn new(name: &'static str, code: u64, len: usize, fields: Vec<Field>) -> Self {
        Self { name, code, fields, len: len.to_string(), rest: None }
    }

    /// The same with another length.
    pub(crate) fn long(mut self, len: String) -> Self {
        self.len = len;
        self
    }

    /// The same with bytes behind its fields.
    pub(crate) fn followed_by(mut self, name: &'static str, begin: &str, behind: usize) -> Self {
        self.rest = Some((name, begin.to_owned(), behind));
        self
    }
}
