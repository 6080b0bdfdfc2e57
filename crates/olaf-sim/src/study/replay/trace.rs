//! Recorded arrivals, as CSV.

use super::error::ReplayError;
use super::names::Names;
use olaf_engine::Instant;

/// The columns of a trace. A file may have them in any order, and others beside them.
pub const COLUMNS: [&str; 6] = ["t_ns", "cluster", "worker", "seq", "reward", "bytes"];

const T_NS: usize = 0;
const CLUSTER: usize = 1;
const WORKER: usize = 2;
const SEQ: usize = 3;
const REWARD: usize = 4;
const BYTES: usize = 5;

/// One line of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) at: Instant,
    pub(super) cluster: u32,
    pub(super) worker: u32,
    pub(super) sequence: u64,
    pub(super) reward: f64,
    pub(super) bytes: u32,
}

/// A trace as it is read, line by line.
pub(super) struct Trace<'a> {
    bytes: &'a [u8],
    reader: csv::Reader<&'a [u8]>,
    record: csv::StringRecord,
    /// Where each of [`COLUMNS`] stands in the file.
    places: [usize; COLUMNS.len()],
    width: usize,
    /// Time of the arrival before, and where in the file it begins.
    before: Option<(u64, u64)>,
    pub(super) clusters: Names,
    pub(super) workers: Names,
}

impl<'a> Trace<'a> {
    /// Reads the header.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, ReplayError> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut reader =
            csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(bytes);
        let header = reader.headers().map_err(|error| bad_text(bytes, &error))?;
        let mut places = [0; COLUMNS.len()];
        for (place, column) in places.iter_mut().zip(COLUMNS) {
            let mut found = header.iter().enumerate().filter(|(_, name)| *name == column);
            *place = match (found.next(), found.next()) {
                (Some((at, _)), None) => at,
                (Some(_), Some(_)) => return Err(ReplayError::RepeatedColumn { column }),
                (None, _) => {
                    let found = header.iter().collect::<Vec<_>>().join(",");
                    return Err(ReplayError::MissingColumn { column, found });
                }
            };
        }
        let width = header.len();
        Ok(Self {
            bytes,
            reader,
            record: csv::StringRecord::new(),
            places,
            width,
            before: None,
            clusters: Names::default(),
            workers: Names::default(),
        })
    }

    /// The next arrival; nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<Row>, ReplayError> {
        let more = self.reader.read_record(&mut self.record);
        if !more.map_err(|error| bad_text(self.bytes, &error))? {
            return Ok(None);
        }
        if self.record.len() != self.width {
            let (line, found, expected) = (self.line(), self.record.len(), self.width);
            return Err(ReplayError::Columns { line, found, expected });
        }
        let at = self.number::<u64>(T_NS, "a whole number of nanoseconds, 0 or more")?;
        if let Some((before, place)) = self.before
            && at < before
        {
            let (line, before_line) = (self.line(), line_at(self.bytes, place));
            return Err(ReplayError::Order { line, at, before, before_line });
        }
        self.before = Some((at, self.place()));
        let bytes = self.number::<u32>(BYTES, "a whole number of bytes, 1 to 4294967295")?;
        if bytes == 0 {
            return Err(self.bad(BYTES, "a whole number of bytes, 1 to 4294967295"));
        }
        let sequence = self.number::<u64>(SEQ, "a whole number, 0 or more")?;
        let reward = self.number::<f64>(REWARD, "a number (nan and inf are rejected later)")?;
        let cluster = self.name(CLUSTER)?;
        let worker = self.name(WORKER)?;
        let cluster = self.clusters.index(&self.record[cluster]).ok_or(ReplayError::TooLong)?;
        let worker = self.workers.index(&self.record[worker]).ok_or(ReplayError::TooLong)?;
        Ok(Some(Row { at: Instant(at), cluster, worker, sequence, reward, bytes }))
    }

    fn number<T: std::str::FromStr>(
        &self,
        column: usize,
        expected: &'static str,
    ) -> Result<T, ReplayError> {
        self.record[self.places[column]].parse().map_err(|_| self.bad(column, expected))
    }

    fn name(&self, column: usize) -> Result<usize, ReplayError> {
        let place = self.places[column];
        if self.record[place].is_empty() {
            return Err(self.bad(column, "a number or a name"));
        }
        Ok(place)
    }

    fn bad(&self, column: usize, expected: &'static str) -> ReplayError {
        let (line, value) = (self.line(), self.record[self.places[column]].to_owned());
        ReplayError::Field { line, column: COLUMNS[column], value, expected }
    }
    /// Where in the file the current line begins.
    fn place(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::byte)
    }

    fn line(&self) -> u64 {
        line_at(self.bytes, self.place())
    }
}

/// The number of the line that holds the record at `place`, with empty lines before it counted.
///
/// The reader's own line numbers are wrong for empty lines and for line ends of two bytes.
fn line_at(bytes: &[u8], place: u64) -> u64 {
    let place = usize::try_from(place).unwrap_or(usize::MAX).min(bytes.len());
    let empty = bytes[place..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let before = &bytes[..place + empty];
    1 + before.iter().filter(|byte| **byte == b'\n').count() as u64
}

fn bad_text(bytes: &[u8], error: &csv::Error) -> ReplayError {
    match error.kind() {
        csv::ErrorKind::Utf8 { pos, .. } => {
            let place = pos.as_ref().map_or(0, csv::Position::byte);
            ReplayError::NotUtf8 { line: line_at(bytes, place) }
        }
        _ => ReplayError::Read(error.to_string()),
    }
}
