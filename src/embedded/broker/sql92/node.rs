//! What a condition is made of.

/// A value that stands in the condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Constant {
    Null,
    Bool(bool),
    /// A whole number that fits 32 bits; the width decides how texts are read when they are compared with it.
    Int(i32),
    Long(i64),
    Double(f64),
    Text(Box<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Where a text is sought in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Anywhere,
    AtStart,
    AtEnd,
}

#[derive(Debug)]
pub(super) enum Node {
    Constant(Constant),
    /// A property by its place in the list of names.
    Property(usize),
    Negate(Box<Node>),
    Not(Box<Node>),
    /// A property where a truth value is needed.
    Cast(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Equal(Box<[Node; 2]>),
    Relation(Relation, Box<[Node; 2]>),
    Between {
        /// Value, low and high end.
        parts: Box<[Node; 3]>,
        negated: bool,
    },
    In {
        property: usize,
        texts: Vec<Box<str>>,
        negated: bool,
    },
    Search {
        place: Place,
        inside: Box<Node>,
        text: Box<str>,
        negated: bool,
    },
}

impl Node {
    /// Whether the node gives a truth value (or nothing), as the grammar sees it.
    pub(super) fn is_boolean(&self) -> bool {
        match self {
            Self::Constant(constant) => matches!(constant, Constant::Null | Constant::Bool(_)),
            Self::Property(_) | Self::Negate(_) => false,
            _ => true,
        }
    }

    /// A number that stands in the condition without a sign.
    pub(super) fn constant_number(&self) -> Option<f64> {
        match self {
            Self::Constant(Constant::Int(number)) => Some(f64::from(*number)),
            Self::Constant(Constant::Long(number)) => Some(*number as f64),
            Self::Constant(Constant::Double(number)) => Some(*number),
            _ => None,
        }
    }
}
