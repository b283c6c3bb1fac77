//! Typed headers: structs on one side, [`ExtFields`] on the other.
//!
//! [`command_header!`] makes both directions of a header from its fields and their names on the wire. Text is borrowed
//! both ways. The type of a field is its rule: a bare type must be there when it is read, an `Option` may be absent,
//! and `= value` behind the name is what absence reads as.

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::decimal::{self, parse_i32, parse_i64};
use crate::protocol::entry_form::EntryForm;
use crate::protocol::ext_fields::ExtFields;
use crate::protocol::key::Key;
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

/// The fields of a header, to be written into a buffer.
pub(crate) trait HeaderFields {
    /// How much room they need, in any form.
    fn room(&self) -> usize;

    /// Writes them at `at`. Returns where they end, and whether the form can carry them all.
    fn put<F: EntryForm>(&self, out: &mut [u8], at: usize) -> (usize, bool);
}

/// What a field of a header can be.
pub(crate) trait HeaderField<'a>: Sized {
    /// How much room its value needs at most.
    fn room(&self) -> usize;

    /// Writes the field at `at`. Returns where it ends, and whether the form can carry it.
    fn put<F: EntryForm>(&self, out: &mut [u8], at: usize, key: &'static Key) -> (usize, bool);

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
        let field = key.name();
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
    fn room(&self) -> usize {
        self.len()
    }

    #[inline]
    fn put<F: EntryForm>(&self, out: &mut [u8], at: usize, key: &'static Key) -> (usize, bool) {
        F::text(out, at, key, self)
    }

    #[inline]
    fn read(value: Option<&'a [u8]>) -> Result<Self, FieldFault> {
        str::from_utf8(value.ok_or(FieldFault::Missing)?).map_err(|_| FieldFault::NotText)
    }
}

impl<'a> HeaderField<'a> for i32 {
    #[inline]
    fn room(&self) -> usize {
        decimal::LONGEST
    }

    #[inline]
    fn put<F: EntryForm>(&self, out: &mut [u8], at: usize, key: &'static Key) -> (usize, bool) {
        (F::int(out, at, key, i64::from(*self)), true)
    }

    #[inline]
    fn read(value: Option<&'a [u8]>) -> Result<Self, FieldFault> {
        parse_i32(value.ok_or(FieldFault::Missing)?).ok_or(FieldFault::NotANumber)
    }
}

impl<'a> HeaderField<'a> for i64 {
    #[inline]
    fn room(&self) -> usize {
        decimal::LONGEST
    }

    #[inline]
    fn put<F: EntryForm>(&self, out: &mut [u8], at: usize, key: &'static Key) -> (usize, bool) {
        (F::int(out, at, key, *self), true)
    }

    #[inline]
    fn read(value: Option<&'a [u8]>) -> Result<Self, FieldFault> {
        parse_i64(value.ok_or(FieldFault::Missing)?).ok_or(FieldFault::NotANumber)
    }
}

impl<'a> HeaderField<'a> for bool {
    #[inline]
    fn room(&self) -> usize {
        "false".len()
    }

    #[inline]
    fn put<F: EntryForm>(&self, out: &mut [u8], at: usize, key: &'static Key) -> (usize, bool) {
        F::text(out, at, key, if *self { "true" } else { "false" })
    }

    /// As Java's `parseBoolean`: whatever is not "true" is false.
    #[inline]
    fn read(value: Option<&'a [u8]>) -> Result<Self, FieldFault> {
        Ok(value.ok_or(FieldFault::Missing)?.eq_ignore_ascii_case(b"true"))
    }
}

impl<'a, T: HeaderField<'a>> HeaderField<'a> for Option<T> {
    #[inline]
    fn room(&self) -> usize {
        self.as_ref().map_or(0, T::room)
    }

    #[inline]
    fn put<F: EntryForm>(&self, out: &mut [u8], at: usize, key: &'static Key) -> (usize, bool) {
        self.as_ref().map_or((at, true), |value| value.put::<F>(out, at, key))
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
                out.put_header(self);
            }

            fn read(ext: &$for_lifetime $crate::protocol::ExtFields) -> $crate::error::Result<Self> {
                const KEYS: [&$crate::protocol::key::Key; [$($wire),*].len()] =
                    [$($crate::protocol::key::key!($wire)),*];
                // Most peers write the fields of a header in one order, and these structs have that order.
                let mut entries = ext.entries();
                let in_order = [$(entries.value_of($crate::protocol::key::key!($wire))),*];
                let [$($field),*] = if entries.is_over() { in_order } else { ext.collect(&KEYS) };
                Ok(Self {
                    $($field: command_header!(@read $field, $type,
                        $crate::protocol::key::key!($wire), stringify!($name) $(, $default)?),)*
                })
            }
        }

        impl $crate::protocol::command_header::HeaderFields for $name $($debug_lifetime)* {
            #[inline]
            fn room(&self) -> usize {
                use $crate::protocol::command_header::HeaderField;
                [$($wire),*].len() * $crate::protocol::entry_form::AROUND $(+ $wire.len() + self.$field.room())*
            }

            #[inline]
            fn put<F: $crate::protocol::entry_form::EntryForm>(&self, out: &mut [u8], at: usize) -> (usize, bool) {
                use $crate::protocol::command_header::HeaderField;
                let all_plain = true;
                $(let (at, plain) = self.$field.put::<F>(out, at, $crate::protocol::key::key!($wire));
                let all_plain = all_plain & plain;)*
                (at, all_plain)
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
