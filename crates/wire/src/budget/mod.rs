//! What model calls may cost: bounds, prices, and the account that holds to them. One for all: the calls of programs, and the questions
//! to judges and manipulators.

mod cost;
mod ledger;

pub use self::{
    cost::{Budget, Cost, PICO, Price, pico_for},
    ledger::{Exhausted, Ledger, Reservation, SpendingJournal},
};
