//! Measures the hardware for `olaf reproduce olaf/hardware`: reads one question as JSON from standard input,
//! `{"bursts": {..}}` or `{"updates": {..}}`, and prints the answer as JSON.

use olaf_cosim::bursts::{Bursts, Updates, measure, through_queue};
use serde::Deserialize;
use std::io::{Read, Write};
use std::process::ExitCode;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Question {
    Bursts(Bursts),
    Updates(Updates),
}

fn answer(text: &str) -> Result<String, String> {
    let question = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let written = match question {
        Question::Bursts(bursts) => serde_json::to_string(&through_queue(&bursts.check()?)?),
        Question::Updates(updates) => serde_json::to_string(&measure(updates)?),
    };
    written.map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string());
    let printed = read.and_then(|_| answer(&text)).and_then(|answer| {
        writeln!(std::io::stdout(), "{answer}").map_err(|error| error.to_string())
    });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("figures: {error}");
            ExitCode::from(2)
        }
    }
}
