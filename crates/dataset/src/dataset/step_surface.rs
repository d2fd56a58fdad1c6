//! The surface that a recorded step went through.

use crate::{
    surface::{self, Surface},
    trajectory::Step,
};

pub(super) fn surface_of(step: &Step) -> Option<&'static dyn Surface> {
    surface::named(&step.surface)
}
