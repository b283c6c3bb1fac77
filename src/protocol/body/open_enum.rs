//! Enums that are written as the names of Java constants.

/// Defines an enum whose variants have names on the wire, and a variant `Unknown` for all other names and for null.
macro_rules! open_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $wire:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            /// A constant this crate does not know, or none. It is written as null.
            #[default]
            Unknown,
        }

        impl $name {
            /// The name on the wire, when it has one.
            pub const fn wire_name(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => Some($wire),)*
                    Self::Unknown => None,
                }
            }

            /// The variant of that name.
            pub fn from_wire_name(name: &str) -> Self {
                match name {
                    $($wire => Self::$variant,)*
                    _ => Self::Unknown,
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.wire_name().serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = Option::<std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Ok(name.map_or(Self::Unknown, |name| Self::from_wire_name(&name)))
            }
        }
    };
}

pub(crate) use open_enum;
