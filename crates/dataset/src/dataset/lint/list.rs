//! The macro behind the list of rules: one line there, and reports, help and the test of fixtures know it.

/// Declares the rules with their names and meanings.
macro_rules! rules {
    ($($Variant:ident $name:literal $meaning:literal;)*) => {
        /// A rule of lint.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, schemars::JsonSchema)]
        #[schemars(with = "String", extend("enum" = Rule::ALL.iter().map(|rule| rule.name()).collect::<Vec<_>>()))]
        pub enum Rule { $(#[doc = $meaning] $Variant,)* }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Rule] = &[$(Rule::$Variant),*];

            /// Its name, for example `step-exists`.
            pub fn name(self) -> &'static str { match self { $(Rule::$Variant => $name),* } }

            /// What it means that it is broken.
            pub fn meaning(self) -> &'static str { match self { $(Rule::$Variant => $meaning),* } }
        }

        impl Serialize for Rule {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}
