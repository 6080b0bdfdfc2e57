//! A job's state as an `.npz`, see `docs/reference/checkpoint.md`.

use super::npy;
use olaf_host::push_pull::layout::{Layout, NamedArray};
use olaf_host::push_pull::server::{ClusterState, Counts, JobState, RuleState, Staleness};
use olaf_host::{Shape, push_pull::worker::Rule};
use olaf_wire::offsets::DEFAULT_SEGMENT_LANES;
use olaf_wire::{ClusterId, JobId, JobRule};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

const FORMAT: &str = "olaf-checkpoint";
const FORMAT_VERSION: u32 = 1;
const METADATA: &str = "olaf.metadata.json";
const BEST: &str = "olaf.rule.best";
const RECENT: &str = "olaf.rule.recent";
const AVERAGE: &str = "olaf.rule.average";
const AVERAGED: &str = "olaf.rule.averaged";
/// The one array of a model without names.
const FLAT: &str = "parameters";

/// The content of a file. If it holds a model without a server's counts, all counts are 0.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) state: JobState,
    /// The server wrote it when it stopped in order.
    pub(crate) is_last: bool,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    format: String,
    format_version: u32,
    #[serde(default)]
    software: String,
    #[serde(default)]
    saved_at_ns: u64,
    #[serde(default = "first_job")]
    job: u32,
    version: u32,
    #[serde(default)]
    unpublished: bool,
    #[serde(default)]
    is_last: bool,
    parameters: u32,
    #[serde(default = "usual_lanes")]
    segment_lanes: u32,
    layout: Option<Vec<NamedArray>>,
    /// For people: the rule in force is that of the server's configuration.
    #[serde(skip_deserializing)]
    rule: Option<Rule>,
    #[serde(default)]
    counts: Counts,
    #[serde(default)]
    staleness: Staleness,
    #[serde(default)]
    clusters: Vec<ClusterEntry>,
}

const fn first_job() -> u32 {
    1
}

const fn usual_lanes() -> u32 {
    DEFAULT_SEGMENT_LANES as u32
}

#[derive(Serialize, Deserialize)]
struct ClusterEntry {
    cluster: u32,
    #[serde(flatten)]
    state: ClusterState,
}

/// Where the file before that one is kept.
pub(crate) fn previous(path: &Path) -> PathBuf {
    with_suffix(path, ".previous")
}

/// Where a file that cannot be read is put aside: the next checkpoint would push it over the good
/// file before it.
pub(crate) fn damaged(path: &Path) -> PathBuf {
    with_suffix(path, ".damaged")
}

/// An unused name for a file that a server sets aside to begin anew.
pub(crate) fn unused_name(path: &Path) -> PathBuf {
    let mut names = (1u64..).map(|number| with_suffix(path, &format!(".before-{number}")));
    let is_free = |name: &PathBuf| !taken(name) && !taken(&previous(name));
    names.find(is_free).expect("numbers do not end")
}

/// Returns true if anything has that name, a link to nothing too.
pub(crate) fn taken(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Writes a checkpoint. Whatever happens meanwhile, `path` or the file before it is whole.
pub(crate) fn write(
    path: &Path,
    state: &JobState,
    rule: JobRule,
    is_last: bool,
    now_ns: u64,
) -> io::Result<()> {
    let half = with_suffix(path, ".part");
    let file = File::create(&half)?;
    let written = archive(BufWriter::new(file), state, rule, is_last, now_ns);
    let file = written.and_then(|stream| stream.into_inner().map_err(|e| e.into_error()))?;
    file.sync_all()?;
    drop(file);
    keep(path)?;
    fs::rename(&half, path)?;
    // The names are on the disk once their folder is.
    if let Some(folder) = path.parent() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        sync_folder(folder)?;
    }
    Ok(())
}

/// The file gets the name of the one before it as well: a program that reads checkpoints finds `path` at any moment.
fn keep(path: &Path) -> io::Result<()> {
    let second = with_suffix(path, ".link");
    let _ = fs::remove_file(&second);
    let kept = match fs::hard_link(path, &second) {
        Ok(()) => fs::rename(&second, previous(path)),
        // Some file systems have no links: `path` is then missing for a moment.
        Err(_) => fs::rename(path, previous(path)),
    };
    match kept {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Some file systems know no such thing as a folder's sync.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
        {
            Ok(())
        }
        result => result,
    }
}

fn archive(
    stream: BufWriter<File>,
    state: &JobState,
    rule: JobRule,
    is_last: bool,
    now_ns: u64,
) -> io::Result<BufWriter<File>> {
    let mut zip = ZipWriter::new(stream);
    let mut lanes = state.segments.iter().flat_map(|segment| segment.iter());
    for array in arrays_of(state) {
        let size = array.size().unwrap_or(u64::MAX);
        let values = lanes.by_ref().take(usize::try_from(size).unwrap_or(usize::MAX));
        put(&mut zip, &array.name, "<f4", &array.shape, size, values.map(|w| w.to_le_bytes()))?;
    }
    let rules = &state.rules;
    let segments = [u32::try_from(rules.len()).unwrap_or(u32::MAX)];
    let count = u64::from(segments[0]);
    let best = rules.iter().map(|rule| rule.best.to_le_bytes());
    put(&mut zip, BEST, "<f8", &segments, count, best)?;
    let recent = rules.iter().map(|rule| rule.recent.unwrap_or(f64::NAN).to_le_bytes());
    put(&mut zip, RECENT, "<f8", &segments, count, recent)?;
    let averaged = rules.iter().map(|rule| [u8::from(!rule.average.is_empty())]);
    put(&mut zip, AVERAGED, "|u1", &segments, count, averaged)?;
    let averages: usize = rules.iter().map(|rule| rule.average.len()).sum();
    let averages = [u32::try_from(averages).unwrap_or(u32::MAX)];
    let average = rules.iter().flat_map(|rule| rule.average.iter()).map(|g| g.to_le_bytes());
    put(&mut zip, AVERAGE, "<f4", &averages, u64::from(averages[0]), average)?;
    zip.start_file(METADATA, options(0))?;
    zip.write_all(&serde_json::to_vec_pretty(&metadata(state, rule, is_last, now_ns))?)?;
    Ok(zip.finish()?)
}

fn metadata(state: &JobState, rule: JobRule, is_last: bool, now_ns: u64) -> Metadata {
    let clusters = state.clusters.iter();
    Metadata {
        format: FORMAT.into(),
        format_version: FORMAT_VERSION,
        software: concat!("olaf ", env!("CARGO_PKG_VERSION")).into(),
        saved_at_ns: now_ns,
        job: state.job.0,
        version: state.version,
        unpublished: state.unpublished,
        is_last,
        parameters: state.shape.parameters,
        segment_lanes: state.shape.segment_lanes,
        layout: state.layout.as_ref().map(|layout| layout.arrays().into()),
        rule: Some(rule.into()),
        counts: state.counts.clone(),
        staleness: state.staleness,
        clusters: clusters
            .map(|(id, state)| ClusterEntry { cluster: id.0, state: *state })
            .collect(),
    }
}

fn arrays_of(state: &JobState) -> Vec<NamedArray> {
    let flat = || vec![NamedArray { name: FLAT.into(), shape: vec![state.shape.parameters] }];
    state.layout.as_ref().map_or_else(flat, |layout| layout.arrays().into())
}

/// Stored as it is: weights do not compress, and numpy maps the arrays where they lie.
fn options(bytes: u64) -> SimpleFileOptions {
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    options.large_file(bytes >= u64::from(u32::MAX))
}

fn put<const N: usize>(
    zip: &mut ZipWriter<BufWriter<File>>,
    name: &str,
    descr: &str,
    shape: &[u32],
    size: u64,
    values: impl Iterator<Item = [u8; N]>,
) -> io::Result<()> {
    let header = npy::header(descr, shape);
    zip.start_file(format!("{name}.npy"), options(size * N as u64 + header.len() as u64))?;
    zip.write_all(&header)?;
    // In pieces: a call for each number takes longer than the writing.
    let mut piece = Vec::with_capacity(1 << 16);
    for value in values {
        piece.extend_from_slice(&value);
        if piece.len() >= 1 << 16 {
            zip.write_all(&piece)?;
            piece.clear();
        }
    }
    zip.write_all(&piece)
}

/// Reads a checkpoint; why not, where that fails. Whether the state can be is for
/// [`olaf_host::Server::restore`] to say.
pub(crate) fn read(path: &Path) -> Result<Saved, String> {
    let system = |error: io::Error| format!("cannot be read: {error}");
    let file = File::open(path).map_err(system)?;
    let limit = file.metadata().map_err(system)?.len();
    let zip = ZipArchive::new(BufReader::new(file));
    let mut entries =
        Entries { zip: zip.map_err(|error| format!("damaged or cut short: {error}"))?, limit };
    let metadata = metadata_of(&entries.bytes(METADATA)?)?;
    let Metadata { parameters, segment_lanes, .. } = metadata;
    if parameters == 0 || segment_lanes == 0 || u64::from(parameters) > limit {
        return Err(format!("{METADATA}: impossible size of the model"));
    }
    let shape = Shape { parameters, segment_lanes };
    let layout = metadata.layout.map(|arrays| Layout::new(arrays, parameters)).transpose();
    let layout = layout.map_err(|error| format!("{METADATA}: layout: {error}"))?;
    let flat = [NamedArray { name: FLAT.into(), shape: vec![parameters] }];
    let mut lanes = Vec::with_capacity(parameters as usize);
    for NamedArray { name, shape } in layout.as_ref().map_or(&flat[..], Layout::arrays) {
        lanes.extend(floats(&entries.data(name, "<f4", shape)?));
    }
    let segments =
        (0..shape.segments()).map(|segment| Arc::new(lanes[shape.range(segment)].into()));
    Ok(Saved {
        is_last: metadata.is_last,
        state: JobState {
            job: JobId(metadata.job),
            shape,
            version: metadata.version,
            unpublished: metadata.unpublished,
            segments: segments.collect(),
            rules: rules(&mut entries, shape)?,
            layout,
            counts: metadata.counts,
            staleness: metadata.staleness,
            clusters: metadata
                .clusters
                .into_iter()
                .map(|entry| (ClusterId(entry.cluster), entry.state))
                .collect(),
        },
    })
}

fn metadata_of(bytes: &[u8]) -> Result<Metadata, String> {
    #[derive(Deserialize)]
    struct Format {
        format: String,
        format_version: u32,
    }
    let wrong = |error: serde_json::Error| format!("{METADATA}: {error}");
    let Format { format, format_version } = serde_json::from_slice(bytes).map_err(wrong)?;
    if format != FORMAT {
        return Err(format!("{METADATA} lacks format {FORMAT:?}: not a checkpoint of a server"));
    }
    if format_version != FORMAT_VERSION {
        return Err(format!(
            "format {format_version}; this release reads format {FORMAT_VERSION}: use the release \
             that wrote it"
        ));
    }
    serde_json::from_slice(bytes).map_err(wrong)
}

fn rules(entries: &mut Entries, shape: Shape) -> Result<Vec<RuleState>, String> {
    let has = |name: &str| entries.zip.index_for_name(&format!("{name}.npy")).is_some();
    if ![BEST, RECENT, AVERAGED, AVERAGE].into_iter().any(has) {
        return Ok(Vec::new());
    }
    // A server that has applied nothing yet remembers nothing.
    let segments = shape.segments();
    let count = match entries.data(BEST, "<f8", &[segments]) {
        Ok(_) => segments,
        Err(_) => 0,
    };
    let best = doubles(&entries.data(BEST, "<f8", &[count])?);
    let recent = doubles(&entries.data(RECENT, "<f8", &[count])?);
    let averaged = entries.data(AVERAGED, "|u1", &[count])?;
    let lanes =
        |segment: u32| if averaged[segment as usize] == 0 { 0 } else { shape.lanes(segment) };
    let size: usize = (0..count).map(lanes).sum();
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    let mut averages = floats(&entries.data(AVERAGE, "<f4", &[size])?);
    let rules = (0..count).map(|segment| RuleState {
        best: best[segment as usize],
        recent: Some(recent[segment as usize]).filter(|recent| !recent.is_nan()),
        average: averages.drain(..lanes(segment)).collect(),
    });
    Ok(rules.collect())
}

fn floats(data: &[u8]) -> Vec<f32> {
    data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn doubles(data: &[u8]) -> Vec<f64> {
    data.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

struct Entries {
    zip: ZipArchive<BufReader<File>>,
    /// Nothing stored in a file is longer than the file.
    limit: u64,
}

impl Entries {
    fn bytes(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let entry = self.zip.by_name(name).map_err(|error| format!("{name}: {error}"))?;
        let mut bytes = Vec::new();
        // The checksum is compared at the end.
        let read = entry.take(self.limit).read_to_end(&mut bytes);
        read.map_err(|error| format!("{name}: damaged: {error}"))?;
        Ok(bytes)
    }

    fn data(&mut self, name: &str, descr: &str, shape: &[u32]) -> Result<Vec<u8>, String> {
        let bytes = self.bytes(&format!("{name}.npy"))?;
        let data = npy::data(&bytes, descr, shape).map_err(|error| format!("{name}: {error}"))?;
        Ok(data.into())
    }
}
