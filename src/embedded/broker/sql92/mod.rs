//! SQL92 conditions over the properties of messages.
//!
//! Kept from a real broker (the `filter` module of 5.x, checked against its parser with `tests/vectors/sql92.tsv`): the
//! grammar, what is refused while compiling, three-valued logic, how texts are compared with numbers, and these traps:
//! what follows a whole condition is ignored (`a > 1 b` is `a > 1`); a text that is no number ends the evaluation, so
//! `a > 1 OR b = 2` does not match a message whose `a` is `x`; `a = b` holds when both are missing; a bare property is
//! never true; `0.0` is refused; `NOT CONTAINS ''` is false.
//!
//! Left out: numbers in hexadecimal form inside properties. Bounded, where upstream runs until its stack ends: length
//! and nesting of a condition.

mod eval;
mod lexer;
mod node;
mod parser;
#[cfg(test)]
mod tests;

use node::Node;
use std::collections::HashMap;
use std::fmt;

/// Longest condition in bytes.
pub(crate) const MAX_LENGTH: usize = 8 * 1024;

/// A compiled condition.
pub(crate) struct Sql92 {
    root: Node,
    /// The properties it looks at, each with the number by which nodes know it.
    names: HashMap<Box<str>, usize>,
    /// How many nodes there are: the work of one evaluation.
    nodes: usize,
}

impl Sql92 {
    /// Compiles a condition; the error is a text for people.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!("the condition has {} bytes; the most is {MAX_LENGTH}", text.len()));
        }
        parser::parse(text)
    }

    /// Whether a message with these properties passes; what cannot be decided does not.
    pub(crate) fn matches<'p>(&self, properties: impl Iterator<Item = (&'p str, &'p str)>) -> bool {
        let mut values = vec![None; self.names.len()];
        for (name, value) in properties {
            if let Some(at) = self.names.get(name) {
                values[*at] = Some(value); // of equal names the last one counts
            }
        }
        matches!(eval::evaluate(&self.root, &values), Ok(eval::Value::Bool(true)))
    }

    /// What one evaluation costs, roughly in comparisons, for a message with `properties` bytes of them.
    pub(crate) fn cost(&self, properties: usize) -> usize {
        // A property has four bytes at least, and each is looked up; a node may look at a whole value.
        self.nodes * (1 + properties / 64) + properties / 4
    }
}

impl fmt::Debug for Sql92 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sql92({} nodes)", self.nodes)
    }
}
