//! The table checked: every order of events of a few members and a few blocks, explored with
//! `stateright`. Design note 028 has the rules that this proves.
//!
//! The network is the worst there is. Whatever was sent once may arrive at any time, any number of
//! times, or never. The model therefore keeps no packets: a piece arrives where its sender has sent
//! it, and a result where it has ever left.

mod model;
mod system;
mod tests;
