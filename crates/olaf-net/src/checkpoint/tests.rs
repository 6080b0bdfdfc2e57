use super::*;
use olaf_engine::{Engine, Instant, PeerId, Source, Verdict};
use olaf_host::push_pull::server::{
    ClusterState, Counts, JobState, RuleState, ServerConfig, Staleness,
};
use olaf_host::{Layout, NamedArray, Shape};
use olaf_wire::{AggregateKind, ClusterId, JobId, JobRule, RuleKind, ServerGate, Step};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

const RULE: JobRule = JobRule {
    kind: RuleKind::Delta,
    aggregate: AggregateKind::Each,
    step: Step::Mean,
    gate: ServerGate::None,
    factor: 1.0,
    staleness_power: 0.7,
};

/// A folder of its own that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("olaf-checkpoint-{}", crate::random::draw()));
        fs::create_dir(&path).expect("a folder");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn state(version: u32) -> JobState {
    let segments = [[0.1f32, -2.5e-30, 3.0].to_vec(), [1e30, 0.0, -0.0].to_vec(), [7.0].to_vec()];
    let rule = |best, recent, average: &[f32]| RuleState { best, recent, average: average.into() };
    let array = |name: &str, shape: &[u32]| NamedArray { name: name.into(), shape: shape.into() };
    let arrays = vec![array("layers.0/w", &[2, 3]), array("ä", &[]), array("none", &[0, 2])];
    let staleness = Staleness { sum: 0.1 + 0.2, count: 3, max: 2 };
    let cluster = ClusterState {
        deliveries: 4,
        contributions: 5,
        staleness,
        last_reward: Some(1.0 / 3.0),
        newest_version: version,
    };
    JobState {
        job: JobId(3),
        shape: Shape { parameters: 7, segment_lanes: 3 },
        version,
        unpublished: true,
        segments: segments.map(Arc::new).into(),
        rules: vec![
            rule(f64::NEG_INFINITY, None, &[]),
            rule(-1.5, Some(2.0 / 3.0), &[1.0, 2.0, 3.0]),
            rule(4.0, Some(5.0), &[6.0]),
        ],
        layout: Some(Layout::new(arrays, 7).expect("the sizes add up")),
        counts: Counts {
            received: u64::from(u32::MAX) + 1,
            rejected: [("stale".to_owned(), 2)].into(),
            ..Counts::default()
        },
        staleness,
        clusters: [(ClusterId(1), cluster), (ClusterId(2), ClusterState::default())].into(),
    }
}

fn write(path: &Path, state: &JobState) {
    file::write(path, state, RULE, false, 1).expect("a checkpoint");
}

fn brain() -> Brain {
    Brain::new(ServerConfig::default(), 1).expect("a server")
}

#[test]
fn what_is_read_is_what_was_written() {
    let folder = Folder::new();
    let path = folder.file("c.npz");
    for mut state in [state(1), state(2)] {
        for is_last in [false, true] {
            file::write(&path, &state, RULE, is_last, 1).expect("a checkpoint");
            let read = file::read(&path).expect("it is whole");
            assert_eq!((&read.state, read.is_last), (&state, is_last));
            // Without names, and before the first update.
            state.layout = None;
            state.rules = Vec::new();
        }
    }
}

#[test]
fn the_file_before_is_kept() {
    let folder = Folder::new();
    let path = folder.file("c.npz");
    for version in 1..4 {
        write(&path, &state(version));
    }
    assert_eq!(file::read(&path).expect("whole").state.version, 3);
    assert_eq!(file::read(&file::previous(&path)).expect("whole").state.version, 2);
    assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 2);
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let folder = Folder::new();
    let path = folder.file("c.npz");
    write(&path, &state(1));
    let whole = fs::read(&path).expect("it is there");
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).expect("a file");
        file::read(&path).expect_err("cut short");
    }
}

#[test]
fn a_damaged_byte_is_noticed_or_changes_nothing_and_never_panics() {
    let folder = Folder::new();
    let path = folder.file("c.npz");
    write(&path, &state(1));
    let whole = fs::read(&path).expect("it is there");
    let (mut refused, mut same) = (0, 0);
    for at in (0..whole.len()).step_by(5) {
        let mut damaged = whole.clone();
        damaged[at] ^= if at % 2 == 0 { 0x01 } else { 0xff };
        fs::write(&path, &damaged).expect("a file");
        match file::read(&path) {
            Err(_) => refused += 1,
            Ok(read) => {
                assert_eq!(read.state, state(1), "byte {at}");
                same += 1;
            }
        }
    }
    // What is not noticed are dates, permissions and the like.
    assert!(refused > 3 * same, "{refused} refused, {same} read as if nothing was");
}

#[test]
fn an_archive_of_somebody_else_is_refused_with_the_reason() {
    use std::io::Write;
    let folder = Folder::new();
    let path = folder.file("c.npz");
    let refused = |entries: &[(&str, &[u8])], reason: &str| {
        let mut zip = zip::ZipWriter::new(fs::File::create(&path).expect("a file"));
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        for (name, content) in entries {
            zip.start_file(*name, options).expect("an entry");
            zip.write_all(content).expect("its content");
        }
        zip.finish().expect("an archive");
        let error = file::read(&path).expect_err(reason);
        assert!(error.contains(reason), "{error}: {reason}");
    };
    let meta = "olaf.metadata.json";
    refused(&[("a.npy", b"")], meta);
    refused(&[(meta, b"{")], "EOF");
    refused(&[(meta, br#"{"format": "x", "format_version": 1}"#)], "not a checkpoint");
    refused(&[(meta, br#"{"format": "olaf-checkpoint", "format_version": 2}"#)], "the release");
    refused(&[(meta, br#"{"format": "olaf-checkpoint", "format_version": 1}"#)], "missing field");
    let huge =
        br#"{"format": "olaf-checkpoint", "format_version": 1, "software": "", "saved_at_ns": 0,
        "job": 1, "version": 1, "unpublished": false, "is_last": false, "parameters": 4294967295,
        "segment_lanes": 1, "layout": null, "counts": {}, "clusters": [],
        "staleness": {"sum": 0, "count": 0, "max": 0}}"#;
    refused(&[(meta, huge)], "impossible size");
}

#[test]
fn a_damaged_file_gives_way_to_the_one_before_and_says_why() {
    let folder = Folder::new();
    let path = folder.file("c.npz");
    write(&path, &state(1));
    write(&path, &state(2));
    let text = path.to_str().expect("text");
    let files = Files::new(text).expect("a file that can be written");
    fs::write(&path, b"PK").expect("a file");
    let mut server = brain();
    let events = files.restore(&mut server).expect("the one before");
    assert_eq!((&events[0]["event"], &events[0]["version"]), (&"restored".into(), &1.into()));
    assert!(events[0]["file"].as_str().is_some_and(|file| file.ends_with(".previous")));
    assert!(events[0]["reason"].as_str().is_some_and(|why| why.contains("damaged")), "{events:?}");
    // The damaged one never takes the place of the good one.
    write(&path, &state(3));
    let before = file::read(&file::previous(&path)).expect("the good one");
    assert_eq!(before.state.version, 1);
    assert_eq!(fs::read(folder.file("c.npz.damaged")).expect("kept"), b"PK");
    assert_eq!(events[0]["kept_as"], folder.file("c.npz.damaged").display().to_string());

    fs::write(&path, b"PK").expect("a file");
    fs::write(file::previous(&path), b"").expect("a file");
    let error = files.restore(&mut brain()).expect_err("both are damaged").to_string();
    assert!(error.contains("c.npz: ") && error.contains("--fresh"), "{error}");
    let Err(StartError::Config(_)) = Files::new(folder.0.to_str().expect("text")) else {
        panic!("a folder is no file");
    };
}

#[test]
fn a_reader_finds_a_whole_file_at_any_moment() {
    let folder = Folder::new();
    let path = folder.file("c.npz");
    write(&path, &state(1));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (2..40).for_each(|version| write(&path, &state(version))));
        let mut newest = 1;
        while !writer.is_finished() {
            let version = file::read(&path).expect("a checkpoint").state.version;
            assert!(version >= newest, "{version} after {newest}");
            newest = version;
        }
    });
    assert_eq!(file::read(&file::previous(&path)).expect("a checkpoint").state.version, 38);
}

#[test]
fn each_job_has_a_file_of_its_own_where_the_name_says_so() {
    let folder = Folder::new();
    let text = folder.file("lab-{job}.npz");
    let files = Files::new(text.to_str().expect("text")).expect("a name");
    for job in [3, 12] {
        write(&files.of(job), &JobState { job: JobId(job), ..state(job) });
    }
    fs::write(folder.file("lab-x.npz"), b"").expect("a file");
    fs::rename(files.of(12), file::previous(&files.of(12))).expect("as after a crash");
    let mut server = brain();
    assert_eq!(files.restore(&mut server).expect("both").len(), 2);
    let jobs: Vec<_> = server.revisions().map(|(job, _)| job.0).collect();
    assert_eq!(jobs, [3, 12]);
}

#[test]
fn whoever_begins_anew_keeps_the_files_of_before_for_good() {
    let folder = Folder::new();
    let path = folder.file("c.npz");
    for version in [1, 2] {
        write(&path, &state(version));
    }
    let files = Files::new(path.to_str().expect("text")).expect("a name");
    let version = |name: &str| file::read(&folder.file(name)).expect("a checkpoint").state.version;
    for life in [1, 2] {
        let events = files.set_aside().expect("a folder that can be written to");
        assert_eq!(events[0]["event"], "checkpoint_set_aside");
        assert!(files.restore(&mut brain()).expect("nothing there").is_empty());
        for each in 1..5 {
            write(&path, &state(10 * life + each));
        }
    }
    assert_eq!((version("c.npz.before-1"), version("c.npz.before-1.previous")), (2, 1));
    assert_eq!((version("c.npz.before-2"), version("c.npz.before-2.previous")), (14, 13));
    assert_eq!(version("c.npz"), 24);
}

#[test]
fn the_trial_of_a_folder_leaves_a_half_written_file_alone() {
    let folder = Folder::new();
    let path = folder.file("c.npz");
    fs::write(folder.file("c.npz.part"), b"half").expect("a file");
    Files::new(path.to_str().expect("text")).expect("a name");
    assert_eq!(fs::read(folder.file("c.npz.part")).expect("still there"), b"half");
    assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 1);
}

#[test]
fn a_second_server_does_not_get_the_file_and_hears_whose_it_is() {
    let folder = Folder::new();
    let path = folder.file("c.npz");
    write(&path, &state(3));
    let every = Duration::from_secs(3600);
    let keeper = |brain: &mut Brain| {
        let files = Files::new(path.to_str().expect("a plain name")).expect("a name");
        Keeper::new(files, every, false, brain)
    };
    let mut first = brain();
    let mut held = keeper(&mut first).expect("a file that is free");
    let bytes = fs::read(&path).expect("a checkpoint");
    let Err(StartError::Config(why)) = keeper(&mut brain()) else { panic!("two servers") };
    let owner = format!("process {} on ", std::process::id());
    assert!(why.contains("belongs to another server") && why.contains(&owner), "{why}");
    assert!(why.contains(&format!("incarnation {}", first.incarnation())), "{why}");
    assert_eq!(fs::read(&path).expect("a checkpoint"), bytes, "it has not touched it");
    held.finish_without_last_word();
    drop(held);
    // Once the first one has ended, the next one has it.
    keeper(&mut brain()).expect("a file that is free again");
}

#[test]
fn a_file_of_an_orderly_end_is_the_last_word_only_until_a_server_takes_it_up() {
    let folder = Folder::new();
    let path = folder.file("job.npz");
    file::write(&path, &state(9), RULE, true, 1).expect("a checkpoint");
    let files = Files::new(path.to_str().expect("a plain name")).expect("a file of a folder");
    let (mut brain, every) = (brain(), Duration::from_secs(3600));
    let mut keeper = Keeper::new(files, every, false, &mut brain).expect("a whole file");
    keeper.handle_timeout(keeper.poll_timeout(), &mut brain);
    assert!(keeper.poll_timeout() > crate::clock::now(), "and then not before its time");
    // A server that is killed here has no time for a last word.
    keeper.finish_without_last_word();
    let read = file::read(&path).expect("a whole file");
    assert_eq!((read.state.version, read.is_last), (9, false));
    assert!(file::read(&file::previous(&path)).expect("the one before").is_last);
    // Should that one have to serve, workers may have a newer model all the same.
    fs::write(&path, b"no archive").expect("written");
    let mut brain = self::brain();
    take_up(&mut brain, &path).expect("the one before");
    assert!(goes_on_waiting_after_a_join(&mut brain));
    let mut brain = self::brain();
    file::write(&path, &state(9), RULE, true, 1).expect("a checkpoint");
    take_up(&mut brain, &path).expect("a whole file");
    assert!(!goes_on_waiting_after_a_join(&mut brain), "nobody can have a newer model");
}

/// A worker without a model joins: whether the server still waits for somebody with a newer one.
fn goes_on_waiting_after_a_join(brain: &mut Brain) -> bool {
    let join = olaf_samples::join(olaf_samples::address(3, 0, 0), 7, 3);
    let mut buf = [0; 200];
    let len = join.emit(&mut buf);
    let verdict = brain.handle_packet(Instant(1), Source::end(PeerId(1)), &buf[..len]);
    assert_eq!(verdict, Verdict::Absorb, "a good join");
    brain.awaits_newer(JobId(3))
}

#[test]
fn the_file_of_a_forgotten_job_is_whole_before_and_is_never_written_over() {
    let folder = Folder::new();
    let name = folder.file("job-{job}.npz");
    let path = folder.file("job-3.npz");
    let files = Files::new(name.to_str().expect("a plain name")).expect("a file of a folder");
    let (mut brain, every) = (brain(), Duration::from_secs(30));
    let mut keeper = Keeper::new(files, every, false, &mut brain).expect("no file");
    let mut now = keeper.poll_timeout();
    brain.restore(state(9), true).expect("a job");
    brain.handle_timeout(now);
    now = now + Duration::from_secs(90_000);
    brain.handle_timeout(now);
    assert_eq!(brain.revisions().count(), 1, "nothing is on the disk yet");
    // The writer is a thread of its own: the server's time goes on until it has written.
    let began = std::time::Instant::now();
    let mut told = Vec::new();
    let mut go_on = |brain: &mut Brain, keeper: &mut Keeper| {
        assert!(began.elapsed() < Duration::from_secs(20), "the writer does not write: {told:?}");
        now = now + every;
        brain.handle_timeout(now);
        keeper.handle_timeout(now, brain);
        told.extend(std::iter::from_fn(|| keeper.poll_event()));
        told.clone()
    };
    while brain.revisions().count() == 1 {
        go_on(&mut brain, &mut keeper);
    }
    assert_eq!(file::read(&path).expect("a whole file").state.version, 9);
    let kept = json!({"event": "checkpoint_kept", "job": 3, "file": path.display().to_string()});
    assert_eq!(go_on(&mut brain, &mut keeper), [kept]);
    // A job of the same number begins anew.
    brain.restore(state(1), true).expect("there is no such job");
    let aside = folder.file("job-3.npz.before-1");
    let events = loop {
        let events = go_on(&mut brain, &mut keeper);
        if events.len() > 1 {
            break events;
        }
    };
    assert_eq!(events[1]["event"], "checkpoint_set_aside");
    assert_eq!(events[1]["kept_as"], aside.display().to_string());
    assert_eq!(file::read(&aside).expect("a whole file").state.version, 9);
    assert_eq!(file::read(&path).expect("a whole file").state.version, 1);
}
