//! The loop of a role: events as they come, statistics every so often, a clean end at a signal.

use crate::configuration::{Common, Failure, LogFormat};
use olaf_net::logging::{Level, LogFilter};
use olaf_net::{AskError, EngineKind};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Interval between looks for events: short for a person, long for a processor.
const POLL: Duration = Duration::from_millis(100);

/// A switch or a server.
pub trait Role {
    /// The address it listens on.
    fn address(&self) -> &str;
    /// Its engines and their addresses, where it runs engines.
    fn engines(&self) -> Vec<(&'static str, &str)> {
        Vec::new()
    }
    /// The address that it serves metrics on, if it does.
    fn metrics_address(&self) -> Option<std::net::SocketAddr> {
        None
    }
    /// Serves, in a thread of its own.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    fn start(&self) -> Result<(), olaf_net::StartError>;
    /// Everything counted so far, as JSON.
    ///
    /// # Errors
    /// If its thread died or did not answer in time.
    fn statistics(&self) -> Result<String, AskError>;
    /// The events since the last call, one JSON object each.
    ///
    /// # Errors
    /// If its thread died or did not answer in time.
    fn events(&self) -> Result<Vec<String>, AskError>;
    /// Called once before the end, while it still runs.
    ///
    /// # Errors
    /// If it cannot be left in order.
    fn before_stop(&self) -> Result<(), Failure> {
        Ok(())
    }
    /// Stops the thread and frees the port.
    ///
    /// # Errors
    /// If its thread had died.
    fn stop(&self) -> Result<(), AskError>;
}

/// Serves until SIGTERM or SIGINT; the last line has the final statistics.
///
/// # Errors
/// If it cannot continue; the error says why.
pub fn serve(name: &str, role: &impl Role, common: &Common) -> Result<(), Failure> {
    let signals = signals().map_err(|error| Failure { text: error.to_string(), code: 1 })?;
    let mut report = Report::new(name, common);
    role.start()?;
    report.say(&listening(role));
    let mut due = Instant::now() + common.every;
    let why = loop {
        match signals.recv_timeout(POLL.min(common.every)) {
            Ok(why) => break why,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break "no signals can come",
        }
        report.pass_on(role)?;
        if Instant::now() >= due {
            report.say(&json!({"event": "stats", "stats": statistics(role)?}));
            due = Instant::now() + common.every;
        }
    };
    end(role, &mut report, why)
}

/// The first message: where the role, and each of its engines, listens.
fn listening(role: &impl Role) -> Value {
    let mut message =
        json!({"event": "listening", "address": role.address(), "pid": std::process::id()});
    let engines = role.engines();
    if !engines.is_empty() {
        let engines = engines.into_iter().map(|(name, address)| (name.to_owned(), address.into()));
        message["engines"] = Value::Object(engines.collect());
    }
    if let Some(address) = role.metrics_address() {
        message["metrics"] = format!("http://{address}").into();
    }
    message
}

/// Stops a role; fails if its last checkpoint failed.
fn end(role: &impl Role, report: &mut Report<'_>, why: &str) -> Result<(), Failure> {
    report.pass_on(role)?;
    role.before_stop()?;
    let lost = report.pass_on(role)?;
    let stats = statistics(role)?;
    role.stop()?;
    report.say(&json!({"event": "stopped", "why": why, "stats": stats}));
    match lost {
        None => Ok(()),
        Some(text) => Err(Failure { text, code: 1 }),
    }
}

/// Prints the error to stderr, if any, and returns the exit code.
#[must_use]
#[allow(clippy::print_stderr, reason = "this is a program")]
pub fn finish(program: &str, ended: Result<(), Failure>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{program}: {failure}");
            ExitCode::from(failure.code)
        }
    }
}

/// Sends the names of the signals that stop the program. A second signal ends the process.
fn signals() -> std::io::Result<Receiver<&'static str>> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for (at, signal) in signals.forever().enumerate() {
            if at > 0 {
                std::process::exit(130);
            }
            let _ = tell.send(if signal == SIGINT { "SIGINT" } else { "SIGTERM" });
        }
    });
    Ok(told)
}

fn statistics(role: &impl Role) -> Result<Value, Failure> {
    let text = role.statistics()?;
    Ok(serde_json::from_str(&text).expect("statistics are JSON"))
}

struct Report<'a> {
    name: &'a str,
    style: Style,
    /// None once the reader of stdout has left: a signal then says when to stop.
    out: Option<std::io::Stdout>,
}

/// How lines are written.
enum Style {
    /// Every event as JSON, for the program that started this one.
    Whole,
    /// A log that leaves some lines out.
    Log(LogFormat, LogFilter),
}

impl<'a> Report<'a> {
    fn new(name: &'a str, common: &Common) -> Self {
        let log = || Style::Log(common.log_format, LogFilter::new(common.log_level));
        let style = if common.json { Style::Whole } else { log() };
        Self { name, style, out: Some(std::io::stdout()) }
    }
}

impl Report<'_> {
    /// Prints the events; returns the error of a failed checkpoint, if there is one.
    fn pass_on(&mut self, role: &impl Role) -> Result<Option<String>, Failure> {
        let mut failed = None;
        for text in role.events()? {
            let event: Value = serde_json::from_str(&text).expect("events are JSON");
            self.say(&event);
            if event["event"] == "checkpoint_failed" {
                let (job, file) = (plain(&event["job"]), plain(&event["file"]));
                let reason = plain(&event["reason"]);
                failed = Some(format!(
                    "the last checkpoint of job {job}, {file}, could not be written: {reason}"
                ));
            }
        }
        Ok(failed)
    }

    fn say(&mut self, message: &Value) {
        let event = message["event"].as_str().unwrap_or_default();
        let format = match &mut self.style {
            Style::Whole => return self.print(&message.to_string()),
            Style::Log(format, filter) => {
                let Some(suppressed) = filter.take(event, Instant::now()) else { return };
                let mut told = (suppressed > 0).then(|| (event.to_owned(), suppressed));
                let format = *format;
                let ends = if event == "stopped" { filter.end() } else { Vec::new() };
                for (of, lines) in told.take().into_iter().chain(ends) {
                    self.log(format, &json!({"event": "suppressed", "of": of, "lines": lines}));
                }
                format
            }
        };
        self.log(format, message);
    }

    /// Prints a line of the log.
    fn log(&mut self, format: LogFormat, message: &Value) {
        let line = match format {
            LogFormat::Text => self.sentence(message),
            LogFormat::Json => stamped(message).to_string(),
        };
        self.print(&line);
    }

    fn print(&mut self, line: &str) {
        if let Some(out) = &mut self.out
            && writeln!(out, "{line}").and_then(|()| out.flush()).is_err()
        {
            self.out = None;
        }
    }

    /// A line for people: the event, and every detail with its name.
    fn sentence(&self, message: &Value) -> String {
        let event = message["event"].as_str().unwrap_or_default();
        let what = event.replace('_', " ");
        let details = match event {
            "stats" | "stopped" => summary(&message["stats"]),
            _ => message
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(key, _)| !matches!(key.as_str(), "event" | "at_ns"))
                .map(|(key, value)| format!("{key} {}", plain(value)))
                .collect::<Vec<_>>()
                .join(", "),
        };
        let why = message["why"].as_str().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{}: {what}{why}: {details}", self.name)
    }
}

/// The message with its level and the time.
fn stamped(message: &Value) -> Value {
    let mut stamped = message.clone();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let event = message["event"].as_str().unwrap_or_default();
    stamped["time_unix_s"] = now.as_secs_f64().into();
    stamped["level"] = Level::of(event).name().into();
    stamped
}

/// The counts of each engine of a switch, or of each job of a server.
fn summary(stats: &Value) -> String {
    let sums = EngineKind::EACH.into_iter().filter(|kind| *kind != EngineKind::Queue);
    let sums = sums.filter_map(|kind| counts_of_sums(kind.name(), stats));
    let told: Vec<_> = counts_of_queue(stats).into_iter().chain(sums).collect();
    if told.is_empty() { counts_of_jobs(stats) } else { told.join("; ") }
}

fn counts_of_queue(stats: &Value) -> Option<String> {
    let fates = stats["fates"].as_object()?;
    let fates: Vec<_> = fates
        .iter()
        .map(|(fate, value)| format!("{} {}", fate.replace('_', " "), total(value)))
        .collect();
    let queue = &stats["queue"];
    let queue = format!("queue {}/{}", plain(&queue["used"]), plain(&queue["slots"]));
    Some(format!("received {}, {}, {queue}", plain(&stats["received"]), fates.join(", ")))
}

fn counts_of_sums(name: &str, stats: &Value) -> Option<String> {
    let counts = stats.get(name)?;
    // The server of ATP calls them gradient fragment packets.
    let pieces = counts.get("pieces").unwrap_or(&counts["gradients"]);
    let fates: Vec<_> = pieces
        .as_object()
        .into_iter()
        .flatten()
        .map(|(fate, value)| format!("{} {}", fate.replace('_', " "), total(value)))
        .collect();
    let jobs = counts["jobs"].as_array().into_iter().flatten();
    // Each core has the same workers.
    let jobs = jobs.filter(|job| job.get("core").is_none_or(|core| *core == 0));
    let jobs: Vec<_> = jobs
        .map(|job| {
            let workers = &job["workers"];
            let workers =
                workers.as_array().map_or_else(|| plain(workers), |w| w.len().to_string());
            format!(", job {} with {workers} workers", plain(&job["job"]))
        })
        .collect();
    Some(format!(
        "{name}: pieces {}{}{}",
        fates.join(", "),
        counts.get("results").map(|sent| format!(", results {}", plain(sent))).unwrap_or_default(),
        jobs.concat()
    ))
}

fn counts_of_jobs(stats: &Value) -> String {
    let jobs = stats["jobs"].as_array().into_iter().flatten();
    let jobs: Vec<_> = jobs
        .map(|job| {
            format!(
                "job {}: version {}, {} contributions in {} deliveries",
                plain(&job["job"]),
                plain(&job["version"]),
                plain(&job["received"]),
                plain(&job["deliveries"])
            )
        })
        .collect();
    if jobs.is_empty() { "no job yet".into() } else { jobs.join("; ") }
}

/// A count, or the sum of counts by reason.
fn total(value: &Value) -> u64 {
    match value {
        Value::Object(by_reason) => by_reason.values().filter_map(Value::as_u64).sum(),
        value => value.as_u64().unwrap_or(0),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(table) => {
            let words = table.iter().map(|(key, value)| format!("{key} {}", plain(value)));
            words.collect::<Vec<_>>().join(" and ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str) -> Report<'_> {
        let filter = LogFilter::new(Level::Info);
        Report { name, style: Style::Log(LogFormat::Text, filter), out: None }
    }

    fn said(message: &Value) -> String {
        report("switch").sentence(message)
    }

    /// Serves nothing; its last checkpoint fails.
    #[derive(Default)]
    struct Full(std::cell::RefCell<Vec<String>>);

    impl Role for Full {
        fn address(&self) -> &str {
            ""
        }
        fn start(&self) -> Result<(), olaf_net::StartError> {
            Ok(())
        }
        fn statistics(&self) -> Result<String, AskError> {
            Ok(r#"{"jobs": []}"#.into())
        }
        fn events(&self) -> Result<Vec<String>, AskError> {
            Ok(self.0.take())
        }
        fn before_stop(&self) -> Result<(), Failure> {
            let event =
                json!({"event": "checkpoint_failed", "job": 1, "file": "c", "reason": "full"});
            self.0.borrow_mut().push(event.to_string());
            Ok(())
        }
        fn stop(&self) -> Result<(), AskError> {
            Ok(())
        }
    }

    #[test]
    fn a_last_checkpoint_that_fails_is_told_in_the_exit_code() {
        let mut report = report("server");
        let failure = end(&Full::default(), &mut report, "SIGTERM").expect_err("it failed");
        assert_eq!(failure.code, 1);
        assert!(failure.text.contains("job 1, c, could not be written: full"), "{failure}");
    }

    #[test]
    fn people_read_what_happened_and_its_details() {
        let event = json!({"event": "worker_joined", "worker": 3, "address": "a:1", "at_ns": 7});
        assert_eq!(said(&event), "switch: worker joined: address a:1, worker 3");
        let stats = json!({
            "received": 5, "fates": {"merged": 3, "dropped": {"full": 1, "evicted": 1}},
            "queue": {"used": 0, "slots": 8},
        });
        let line = said(&json!({"event": "stopped", "why": "SIGTERM", "stats": stats}));
        assert_eq!(line, "switch: stopped (SIGTERM): received 5, dropped 2, merged 3, queue 0/8");
        assert!(said(&json!({"event": "stats", "stats": {"jobs": []}})).ends_with("no job yet"));
    }

    #[test]
    fn people_read_of_each_engine() {
        let listening =
            json!({"event": "listening", "engines": {"queue": "a:1", "reduce": "a:2"}, "pid": 7});
        assert_eq!(said(&listening), "switch: listening: engines queue a:1 and reduce a:2, pid 7");
        let reduce = json!({
            "pieces": {"received": 8, "refused": {"wrong_shape": 1}, "summed": 7}, "results": 4,
            "jobs": [{"job": 1, "workers": [{"rank": 0}, {"rank": 1}]}],
        });
        let line = said(&json!({"event": "stats", "stats": {"role": "switch", "reduce": reduce}}));
        assert_eq!(
            line,
            "switch: stats: reduce: pieces received 8, refused 1, summed 7, results 4, job 1 with 2 \
             workers"
        );
    }
}
