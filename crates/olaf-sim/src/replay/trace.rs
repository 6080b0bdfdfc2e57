//! Recorded arrivals, as CSV.

use super::error::ReplayError;
use super::names::Names;
use olaf_engine::Instant;
use std::io::Read;

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
pub(super) struct Trace<R> {
    reader: csv::Reader<R>,
    record: csv::StringRecord,
    /// Where each of [`COLUMNS`] stands in the file.
    places: [usize; COLUMNS.len()],
    width: usize,
    /// Time and line of the arrival before.
    before: Option<(u64, u64)>,
    pub(super) clusters: Names,
    pub(super) workers: Names,
}

impl<R: Read> Trace<R> {
    /// Reads the header.
    pub(super) fn new(reader: R) -> Result<Self, ReplayError> {
        let mut reader =
            csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(reader);
        let header = reader.headers().map_err(|error| ReplayError::from_csv(&error))?;
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
        if !more.map_err(|error| ReplayError::from_csv(&error))? {
            return Ok(None);
        }
        let line = self.record.position().map_or(0, csv::Position::line);
        if self.record.len() != self.width {
            let (found, expected) = (self.record.len(), self.width);
            return Err(ReplayError::Columns { line, found, expected });
        }
        let at = self.number::<u64>(line, T_NS, "a whole number of nanoseconds, 0 or more")?;
        if let Some((before, before_line)) = self.before
            && at < before
        {
            return Err(ReplayError::Order { line, at, before, before_line });
        }
        self.before = Some((at, line));
        let bytes = self.number::<u32>(line, BYTES, "a whole number of bytes, 1 to 4294967295")?;
        if bytes == 0 {
            return Err(self.bad(line, BYTES, "a whole number of bytes, 1 to 4294967295"));
        }
        let sequence = self.number::<u64>(line, SEQ, "a whole number, 0 or more")?;
        let reward =
            self.number::<f64>(line, REWARD, "a number (nan and inf are rejected later)")?;
        let cluster = self.name(line, CLUSTER)?;
        let worker = self.name(line, WORKER)?;
        let cluster = self.clusters.index(&self.record[cluster]).ok_or(ReplayError::TooLong)?;
        let worker = self.workers.index(&self.record[worker]).ok_or(ReplayError::TooLong)?;
        Ok(Some(Row { at: Instant(at), cluster, worker, sequence, reward, bytes }))
    }

    fn number<T: std::str::FromStr>(
        &self,
        line: u64,
        column: usize,
        expected: &'static str,
    ) -> Result<T, ReplayError> {
        self.record[self.places[column]].parse().map_err(|_| self.bad(line, column, expected))
    }

    fn name(&self, line: u64, column: usize) -> Result<usize, ReplayError> {
        let place = self.places[column];
        if self.record[place].is_empty() {
            return Err(self.bad(line, column, "a number or a name"));
        }
        Ok(place)
    }

    fn bad(&self, line: u64, column: usize, expected: &'static str) -> ReplayError {
        let value = self.record[self.places[column]].to_owned();
        ReplayError::Field { line, column: COLUMNS[column], value, expected }
    }
}
