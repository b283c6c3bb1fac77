//! Open integer enums: the named values are constants, and a value without a name survives as it came.

/// Defines a newtype over `i32` with named constants, so that codes of newer peers decode, compare and print.
macro_rules! wire_enum {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$doc:meta])* $constant:ident = $value:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i32);

        impl $name {
            $(
                #[doc = concat!("`", stringify!($constant), "` (", stringify!($value), ").")]
                $(#[$doc])*
                pub const $constant: Self = Self($value);
            )*

            /// Every value that has a name here.
            pub const ALL: &'static [Self] = &[$(Self::$constant),*];

            /// The number on the wire.
            pub const fn value(self) -> i32 {
                self.0
            }

            /// The name RocketMQ gives the value, when it has one here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($constant)),)*
                    _ => None,
                }
            }
        }

        impl From<i32> for $name {
            fn from(value: i32) -> Self {
                Self(value)
            }
        }

        impl From<$name> for i32 {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }
    };
}

pub(crate) use wire_enum;

#[cfg(test)]
mod tests {
    use crate::protocol::RequestCode;

    #[test]
    fn a_value_without_a_name_survives_compares_and_prints_as_its_number() {
        let code = RequestCode::from(98_765);
        assert_eq!((code.name(), code.value()), (None, 98_765));
        assert_eq!(code, RequestCode(98_765));
        assert_eq!(format!("{code:?} {code}"), "98765 98765");
        assert_eq!(format!("{:?}", RequestCode(11)), "PULL_MESSAGE");
    }
}
