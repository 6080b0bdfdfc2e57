//! Reads a [`Bursts`] as JSON from standard input, and prints its [`Outcome`](olaf_cosim::bursts::Outcome).

use olaf_cosim::bursts::{Bursts, through_control};
use std::io::{Read, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut text = String::new();
    let outcome = std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())
        .and_then(|_| serde_json::from_str(&text).map_err(|error| error.to_string()))
        .and_then(Bursts::check)
        .and_then(|bursts| through_control(&bursts));
    let printed = outcome.and_then(|outcome| {
        let line = serde_json::to_string(&outcome).map_err(|error| error.to_string())?;
        writeln!(std::io::stdout(), "{line}").map_err(|error| error.to_string())
    });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bursts: {error}");
            ExitCode::from(2)
        }
    }
}
