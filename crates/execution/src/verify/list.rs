//! The macro behind the list of checkers: one line there, and configurations and task sets know it.

/// Declares the modules of the list and derives from it what `[verify]` and a task may name. `compare`d ones look at
/// texts alone; `run` ones start a child or ask a model.
macro_rules! checks {
    (compare: $($file:ident :: $Type:ident),* $(,)?; run: $($rfile:ident :: $RType:ident),* $(,)?;) => {
        $(mod $file; pub use $file::$Type;)*
        $(mod $rfile; pub use $rfile::$RType;)*

        /// A checker of the list with its parameters, as `[verify]` or a task writes it.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Check {
            $(#[doc = concat!("See [`", stringify!($Type), "`].")] $Type($Type),)*
            $(#[doc = concat!("See [`", stringify!($RType), "`].")] $RType($RType),)*
        }

        impl Check {
            /// The names of all checkers.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($file),)* $(stringify!($rfile)),*];

            /// The name that configurations use.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Check::$Type(_) => stringify!($file),)*
                    $(Check::$RType(_) => stringify!($rfile),)*
                }
            }

            /// What a checker of the first kind says, without waiting; `None` for one that runs something.
            pub fn compares(&self, case: &Case<'_>) -> Option<Verdict> {
                match self {
                    $(Check::$Type(checker) => Some(checker.compare(case).verdict),)*
                    $(Check::$RType(_) => None,)*
                }
            }

            /// Checks an output. `surroundings` hold what a checker of the second kind needs.
            pub async fn check(&self, case: &Case<'_>, surroundings: &Surroundings) -> CheckFinding {
                let said = match self {
                    $(Check::$Type(checker) => checker.compare(case),)*
                    $(Check::$RType(checker) => checker.run(case, surroundings).await,)*
                };
                CheckFinding { checker: self.name().to_owned(), verdict: said.verdict, evidence: said.evidence }
            }
        }
    };
}
