//! Every order of packets at one to three levels of switches and a server, on small cases (stateright).
//!
//! A packet that was sent may arrive at any time, again and again, or never. The tables are the real
//! ones; what a switch and a server do around them is written again here, shortly.

mod system;
mod tests;
