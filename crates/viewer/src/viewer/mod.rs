//! To see a run: what the terminal and the page show of recordings, and the page's server.
//!
//! The same functions make the data of `show`, `diff` and `runs` in JSON and of the page, so that both say the same.
//! [`ViewerLibrary`] answers one path with one piece of data; [`Viewer`] puts it on a listener, [`bundle`] into one file. The
//! page ([`page`]) is hand-written modules without a build step; it gets a run's skeleton at once and bodies on demand.

mod accounts;
mod blind;
mod blind_listing;
mod bundle;
mod change;
mod compare;
mod data;
mod fresh;
mod library;
mod listing;
mod live;
mod looked;
mod mode_form;
mod no_answer;
mod opened;
mod origin;
pub mod page;
mod page_data;
mod planted;
mod report;
mod sample;
mod search;
mod server;
mod shown;
mod skeleton;
mod stamp;
mod step;
mod suspected;
mod step_view;
mod traced;
mod view_routes;

#[cfg(any(test, feature = "testing"))]
pub mod recorded;
#[cfg(test)]
mod tests;

pub use bundle::{Bundle, BundleError, BundleExtent, bundle, dataset_bundle};
pub use change::{ChangeKind, ChangePair, Pieces, ShownChange, changes, pairs_text, pieces, side_by_side, words};
pub use compare::{ComparedRuns, compared};
pub use data::{as_written, shown, step_of, word};
pub use fresh::{SeenMessages, before, fresh, since};
pub use library::{LibraryAnswer, ViewerLibrary};
pub use listing::{
    ChosenRuns, LabelRow, LabelledStep, Listing, ListingCache, ListingPlace, RunKind, RunOrder, RunQuery, RunRow,
    outcomes,
};
pub use no_answer::NoAnswer;
pub use opened::OpenedRun;
pub use origin::ReplyOrigins;
pub use planted::{PlantedAt, planted};
pub use report::campaign_bundle;
pub use search::{FoundRunTexts, FoundStep, FoundTexts, SearchLimit};
pub use server::Viewer;
pub use shown::{ShownRun, ShownStep};
pub use step_view::{StepView, TextBlock, first_words};
pub use suspected::{ATTRIBUTION_FILE, Suspected, same_question};
pub use traced::Traced;
pub use view_routes::{VIEW_ERRORS, VIEW_ROUTES, view_error_schema};
