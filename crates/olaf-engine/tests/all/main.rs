//! The engines, driven by hand and by random traces.
//!
//! One program for all files: linking a program for each file took longer than the tests themselves.
//! `make lint` checks that no file is missing here.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

mod common;

mod addresses;
mod config;
mod extremes;
mod hostile;
mod sum_floods;
mod switch;
mod switch_admission;
mod switch_answers;
mod switch_behind;
mod switch_notices;
mod switch_ports;
mod switch_random;
mod switch_signatures;
mod too_large;
mod unproven;
mod vectors;
