//! What a reader made of a body: the view, and what it could not place.

use crate::trajectory::Unplaced;

/// A view of a body, with the account of what the view does not hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading<T> {
    /// What was read.
    pub view: T,
    /// What may carry a text or a call and was not read, in the order of the body. Empty where the view holds all of it.
    pub unplaced: Vec<Unplaced>,
}

impl<T> Reading<T> {
    /// Whether the view holds all that the body says.
    pub fn is_whole(&self) -> bool {
        self.unplaced.is_empty()
    }
}
