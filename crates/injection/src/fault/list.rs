//! The macro behind the list of faults: one line there, and the plan format and the catalogue know it.

/// Declares the modules of the list and derives from it what a plan may name and what the catalogue shows.
macro_rules! faults {
    ($($file:ident :: $Type:ident),* $(,)?) => {
        $(mod $file; pub use $file::$Type;)*

        /// A fault of the list with its parameters, as a plan writes it.
        #[derive(Debug, Clone, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ListedFault {
            $(#[doc = concat!("See [`", stringify!($Type), "`].")] $Type($Type),)*
        }

        impl ListedFault {
            /// The name that plans use.
            pub fn name(&self) -> &'static str {
                match self { $(ListedFault::$Type(_) => stringify!($file)),* }
            }

            /// The fault itself.
            pub fn into_dyn(self) -> Arc<dyn Fault> {
                match self { $(ListedFault::$Type(fault) => Arc::new(fault)),* }
            }
        }

        /// Every fault of the list: name, and the JSON schema that its parameters and docs give.
        pub fn listed() -> Vec<(&'static str, schemars::Schema)> {
            vec![$((stringify!($file), schemars::schema_for!($Type))),*]
        }
    };
}
