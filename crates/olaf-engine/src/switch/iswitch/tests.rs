//! Traces of datagrams: what comes in, and what goes out.
