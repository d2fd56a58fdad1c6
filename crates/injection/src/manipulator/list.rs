//! The macro behind the list of manipulators: one line there, and the plan format and the catalogue know it.

/// Declares the modules of the list and derives from it what a plan may name and what the catalogue shows.
macro_rules! manipulators {
    ($($file:ident :: $Type:ident ($($Side:ident),+)),* $(,)?) => {
        $(mod $file; pub use $file::$Type;)*

        /// A manipulator of the list with its parameters, as a plan writes it.
        #[derive(Debug, Clone, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ListedManipulator {
            $(#[doc = concat!("See [`", stringify!($Type), "`].")] $Type($Type),)*
        }

        impl ListedManipulator {
            /// The name that plans use.
            pub fn name(&self) -> &'static str {
                match self { $(ListedManipulator::$Type(_) => stringify!($file)),* }
            }

            /// The sides that it can edit.
            pub fn sides(&self) -> &'static [Side] {
                match self { $(ListedManipulator::$Type(_) => &[$(Side::$Side),+]),* }
            }

            /// The manipulator itself.
            pub fn into_dyn(self) -> Arc<dyn Manipulator> {
                match self { $(ListedManipulator::$Type(manipulator) => Arc::new(manipulator)),* }
            }
        }

        /// Every manipulator of the list: name, sides, and the JSON schema that its parameters and docs give.
        pub fn listed() -> Vec<(&'static str, &'static [Side], schemars::Schema)> {
            vec![$((stringify!($file), &[$(Side::$Side),+] as &[Side], schemars::schema_for!($Type))),*]
        }
    };
}
