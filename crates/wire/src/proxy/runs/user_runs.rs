//! The runs of one user of a server: as those of the server, in a directory of the user's own, so that names of runs of different
//! users never meet.

use std::sync::{Arc, OnceLock};

use super::{RunPlans, Runs};
use crate::proxy::{
    logprobs::LogprobRequests,
    setup::RunTemplate,
    stored::{
        ids::StoredIds,
        objects::{ObjectOwners, UserObjects},
    },
    user_name::UserName,
};
use crate::recording::USER_MARK;

impl Runs {
    /// No run yet, of a user of the server whose runs these are: they lie in `@NAME` below its log directory.
    pub(in crate::proxy) fn for_user(&self, name: &UserName) -> Self {
        let template = self.template();
        let owners = self.owners.get_or_init(|| Arc::new(ObjectOwners::open(&template.log_dir)));
        let log_dir = template.log_dir.join(format!("{USER_MARK}{name}"));
        Self {
            plans: RunPlans::clone(&self.plans),
            asking: self.asking.clone(),
            monitor: self.monitor().cloned().map_or_else(OnceLock::new, OnceLock::from),
            logprobs: self.logprobs.as_ref().map(|_| LogprobRequests::default()),
            watch: self.watch.clone(),
            stored_ids: Some(Arc::new(StoredIds::of_user(UserObjects::new(Arc::clone(owners), name)))),
            ..Self::new(RunTemplate { log_dir, ..template.clone() })
        }
    }

    /// What the user has had the upstream make, where the runs are a user's.
    pub(in crate::proxy) fn objects(&self) -> Option<&UserObjects> {
        self.stored_ids.as_deref().map(|ids| &ids.objects)
    }

    /// What the upstream has given to these runs, where they are a user's.
    pub(in crate::proxy) fn stored_ids(&self) -> Option<&StoredIds> {
        self.stored_ids.as_deref()
    }
}
