//! Typed headers: structs on one side, [`ExtFields`] on the other.
//!
//! [`command_header!`] makes both directions of a header from its fields and their names on the wire. Text is borrowed
//! both ways. The type of a field is its rule: a bare type must be there when it is read, an `Option` may be absent,
//! and `= value` behind the name is what absence reads as.

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::decimal::{parse_i32, parse_i64};
use crate::protocol::ext_fields::{ExtFields, Key};
use crate::protocol::scan;

/// The custom header of one request or response.
pub trait CommandHeader<'a>: Sized {
    /// Adds the fields of this header.
    fn write(&self, out: &mut ExtFields);

    /// Reads the header. Fields it does not know are ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`], naming header and field, for a mandatory field that is missing and for a number that
    /// is none.
    fn read(ext: &'a ExtFields) -> Result<Self>;
}

/// What a field of a header can be.
pub(crate) trait HeaderField<'a>: Sized {
    fn put(&self, key: &'static Key, out: &mut ExtFields);

    fn read(value: Option<&'a [u8]>) -> Result<Self, FieldFault>;
}

/// Why a field could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldFault {
    Missing,
    NotANumber,
    NotText,
}

impl FieldFault {
    #[cold]
    pub(crate) fn error(self, header: &str, key: &Key, value: Option<&[u8]>) -> Error {
        let field = key.name;
        let message = match self {
            Self::Missing => format!("{header} lacks the mandatory field {field}"),
            Self::NotANumber => {
                let value = String::from_utf8_lossy(value.unwrap_or_default());
                let shown = scan::cut(&value, 40);
                format!("field {field} of {header} is '{}', which is no number in range", shown.escape_debug())
            }
            Self::NotText => format!("field {field} of {header} is not UTF-8"),
        };
        Error::new(ErrorKind::Protocol, message)
    }
}

impl<'a> HeaderField<'a> for &'a str {
    #[inline]
    fn put(&self, key: &'static Key, out: &mut ExtFields) {
        out.put_key(key, self);
    }

    #[inline]
    fn read(value: Option<&'a [u8]>) -> Result<Self, FieldFault> {
        str::from_utf8(value.ok_or(FieldFault::Missing)?).map_err(|_| FieldFault::NotText)
    }
}

impl<'a> HeaderField<'a> for i32 {
    #[inline]
    fn put(&self, key: &'static Key, out: &mut ExtFields) {
        out.put_key_int(key, i64::from(*self));
    }

    #[inline]
    fn read(value: Option<&'a [u8]>) -> Result<Self, FieldFault> {
        parse_i32(value.ok_or(FieldFault::Missing)?).ok_or(FieldFault::NotANumber)
    }
}

impl<'a> HeaderField<'a> for i64 {
    #[inline]
    fn put(&self, key: &'static Key, out: &mut ExtFields) {
        out.put_key_int(key, *self);
    }

    #[inline]
    fn read(value: Option<&'a [u8]>) -> Result<Self, FieldFault> {
        parse_i64(value.ok_or(FieldFault::Missing)?).ok_or(FieldFault::NotANumber)
    }
}

impl<'a> HeaderField<'a> for bool {
    #[inline]
    fn put(&self, key: &'static Key, out: &mut ExtFields) {
        out.put_key(key, if *self { "true" } else { "false" });
    }

    /// As Java's `parseBoolean`: whatever is not "true" is false.
    #[inline]
    fn read(value: Option<&'a [u8]>) -> Result<Self, FieldFault> {
        Ok(value.ok_or(FieldFault::Missing)?.eq_ignore_ascii_case(b"true"))
    }
}

impl<'a, T: HeaderField<'a>> HeaderField<'a> for Option<T> {
    #[inline]
    fn put(&self, key: &'static Key, out: &mut ExtFields) {
        if let Some(value) = self {
            value.put(key, out);
        }
    }

    #[inline]
    fn read(value: Option<&'a [u8]>) -> Result<Self, FieldFault> {
        value.map(|value| T::read(Some(value))).transpose()
    }
}

/// Defines a header struct and its [`CommandHeader`].
macro_rules! command_header {
    (@read $value:expr, $type:ty, $key:expr, $header:expr) => {{
        let value = $value;
        <$type as $crate::protocol::command_header::HeaderField<'_>>::read(value)
            .map_err(|fault| fault.error($header, $key, value))?
    }};
    (@read $value:expr, $type:ty, $key:expr, $header:expr, $default:expr) => {{
        match $value {
            None => $default,
            value => command_header!(@read value, $type, $key, $header),
        }
    }};
    (@impl [$($impl_lifetime:tt)*] $for_lifetime:lifetime $name:ident [$($self_lifetime:tt)*] [$($debug_lifetime:tt)*] {
        $($field:ident: $type:ty => $wire:literal $(= $default:expr)?,)*
    }) => {
        impl $($impl_lifetime)* $crate::protocol::CommandHeader<$for_lifetime> for $name $($self_lifetime)* {
            fn write(&self, out: &mut $crate::protocol::ExtFields) {
                $($crate::protocol::command_header::HeaderField::put(
                    &self.$field, $crate::protocol::ext_fields::key!($wire), out);)*
            }

            fn read(ext: &$for_lifetime $crate::protocol::ExtFields) -> $crate::error::Result<Self> {
                const KEYS: [&$crate::protocol::ext_fields::Key; [$($wire),*].len()] =
                    [$($crate::protocol::ext_fields::key!($wire)),*];
                let [$($field),*] = ext.collect(&KEYS);
                Ok(Self {
                    $($field: command_header!(@read $field, $type,
                        $crate::protocol::ext_fields::key!($wire), stringify!($name) $(, $default)?),)*
                })
            }
        }

        impl std::fmt::Debug for $name $($debug_lifetime)* {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    // Properties are the user's.
                    $(.field(stringify!($field), if $wire == "properties" { &"(set)" } else { &self.$field }))*
                    .finish()
            }
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident<'a> {
        $($(#[$doc:meta])* pub $field:ident: $type:ty => $wire:literal $(= $default:expr)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name<'a> {
            $($(#[$doc])* pub $field: $type,)*
        }
        command_header! { @impl [<'a>] 'a $name [<'a>] [<'_>] { $($field: $type => $wire $(= $default)?,)* } }
    };
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$doc:meta])* pub $field:ident: $type:ty => $wire:literal $(= $default:expr)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }
        command_header! { @impl [<'a>] 'a $name [] [] { $($field: $type => $wire $(= $default)?,)* } }
    };
}

pub(crate) use command_header;
