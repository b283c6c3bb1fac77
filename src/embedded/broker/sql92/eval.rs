//! What a condition says about the properties of one message.

use super::node::{Constant, Node, Place, Relation};
use std::cmp::Ordering;

/// A value in the course of an evaluation; `Null` is also the third truth value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i32),
    Long(i64),
    Double(f64),
    Text(&'a str),
}

/// The evaluation cannot go on: the message does not match, whatever the rest of the condition says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failed;

type Outcome<'a> = Result<Value<'a>, Failed>;

/// `values` are those of the condition's properties, in the order of its names.
pub(super) fn evaluate<'a>(node: &'a Node, values: &[Option<&'a str>]) -> Outcome<'a> {
    let eval = |node| evaluate(node, values);
    let property = |at: usize| values.get(at).copied().flatten();
    Ok(match node {
        Node::Constant(constant) => match constant {
            Constant::Null => Value::Null,
            Constant::Bool(value) => Value::Bool(*value),
            Constant::Int(number) => Value::Int(*number),
            Constant::Long(number) => Value::Long(*number),
            Constant::Double(number) => Value::Double(*number),
            Constant::Text(text) => Value::Text(text),
        },
        Node::Property(at) => property(*at).map_or(Value::Null, Value::Text),
        Node::Negate(inner) => match eval(inner)? {
            Value::Int(number) => Value::Int(number.wrapping_neg()),
            Value::Long(number) => Value::Long(number.wrapping_neg()),
            Value::Double(number) => Value::Double(-number),
            _ => Value::Null,
        },
        Node::Not(inner) => match eval(inner)? {
            Value::Bool(value) => Value::Bool(!value),
            _ => Value::Null,
        },
        Node::Cast(inner) => match eval(inner)? {
            Value::Null => Value::Null,
            value => Value::Bool(value == Value::Bool(true)),
        },
        Node::And(parts) => junction(parts, false, eval)?,
        Node::Or(parts) => junction(parts, true, eval)?,
        Node::Equal(sides) => {
            let [left, right] = [eval(&sides[0])?, eval(&sides[1])?];
            match (left, right) {
                (Value::Null, Value::Null) => Value::Bool(true),
                (Value::Null, _) => Value::Null,
                (_, Value::Null) => Value::Bool(false),
                (left, right) => Value::Bool(compare(left, right)? == Ordering::Equal),
            }
        }
        Node::Relation(relation, sides) => match eval(&sides[0])? {
            Value::Null => Value::Null,
            left => relate(*relation, left, eval(&sides[1])?)?,
        },
        Node::Between { parts, negated } => match eval(&parts[0])? {
            Value::Null => Value::Null,
            value => {
                let ends = if *negated {
                    [Relation::Less, Relation::Greater]
                } else {
                    [Relation::GreaterOrEqual, Relation::LessOrEqual]
                };
                let mut known = true;
                for (relation, end) in ends.into_iter().zip(&parts[1..]) {
                    match relate(relation, value, eval(end)?)? {
                        Value::Bool(decided) if decided == *negated => return Ok(Value::Bool(decided)),
                        Value::Bool(_) => {}
                        _ => known = false,
                    }
                }
                if known { Value::Bool(!*negated) } else { Value::Null }
            }
        },
        Node::In { property: at, texts, negated } => match property(*at) {
            None => Value::Null,
            Some(value) => Value::Bool(texts.iter().any(|text| **text == *value) != *negated),
        },
        Node::Search { place, inside, text, negated } => {
            let inside = if text.is_empty() { Value::Null } else { eval(inside)? };
            let Value::Text(inside) = inside else { return Ok(Value::Bool(false)) };
            let found = match place {
                Place::Anywhere => inside.contains(&**text),
                Place::AtStart => inside.starts_with(&**text),
                Place::AtEnd => inside.ends_with(&**text),
            };
            Value::Bool(found != *negated)
        }
    })
}

/// AND (decided by the first false part) and OR (by the first true one). A part that is null leaves it open.
fn junction<'a>(parts: &'a [Node], decides: bool, eval: impl Fn(&'a Node) -> Outcome<'a>) -> Outcome<'a> {
    let mut known = true;
    for part in parts {
        match eval(part)? {
            Value::Bool(value) if value == decides => return Ok(Value::Bool(decides)),
            Value::Bool(_) => {}
            _ => known = false,
        }
    }
    Ok(if known { Value::Bool(!decides) } else { Value::Null })
}

fn relate<'a>(relation: Relation, left: Value<'_>, right: Value<'_>) -> Outcome<'a> {
    let order = match (left, right) {
        (_, Value::Null) => return Ok(Value::Null),
        (Value::Text(left), Value::Text(right)) => java_double(left)?.total_cmp(&java_double(right)?),
        (left, right) => compare(left, right)?,
    };
    Ok(Value::Bool(match relation {
        Relation::Less => order.is_lt(),
        Relation::LessOrEqual => order.is_le(),
        Relation::Greater => order.is_gt(),
        Relation::GreaterOrEqual => order.is_ge(),
    }))
}

/// Compares two values, neither of them null. A text becomes what the other side is; what has no common form comes out
/// as different, or ends the evaluation.
fn compare(left: Value<'_>, right: Value<'_>) -> Result<Ordering, Failed> {
    use Value::{Bool, Double, Int, Long, Text};
    let int = |text: &str| text.parse::<i32>().map_err(|_| Failed);
    let long = |text: &str| text.parse::<i64>().map_err(|_| Failed);
    Ok(match (left, right) {
        (Bool(left), Bool(right)) => left.cmp(&right),
        (Bool(_), Text(_)) => return Err(Failed), // upstream stumbles over a cast
        (Text(left), Bool(right)) => left.eq_ignore_ascii_case("true").cmp(&right),
        (Int(left), Int(right)) => left.cmp(&right),
        (Int(left), Long(right)) => i64::from(left).cmp(&right),
        (Long(left), Int(right)) => left.cmp(&i64::from(right)),
        (Long(left), Long(right)) => left.cmp(&right),
        (Int(left), Double(right)) => f64::from(left).total_cmp(&right),
        (Long(left), Double(right)) => (left as f64).total_cmp(&right),
        (Double(left), Int(right)) => left.total_cmp(&f64::from(right)),
        (Double(left), Long(right)) => left.total_cmp(&(right as f64)),
        (Double(left), Double(right)) => left.total_cmp(&right),
        (Text(left), Int(right)) => int(left)?.cmp(&right),
        (Int(left), Text(right)) => left.cmp(&int(right)?),
        (Text(left), Long(right)) => long(left)?.cmp(&right),
        (Long(left), Text(right)) => left.cmp(&long(right)?),
        (Text(left), Double(right)) => java_double(left)?.total_cmp(&right),
        (Double(left), Text(right)) => left.total_cmp(&java_double(right)?),
        (Text(left), Text(right)) => left.cmp(right),
        _ => Ordering::Less,
    })
}

/// Reads a fraction as Java does, but for hexadecimal ones.
fn java_double(text: &str) -> Result<f64, Failed> {
    let text = text.trim_matches(|c| c <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    match unsigned {
        "NaN" => return Ok(f64::NAN),
        "Infinity" => return Ok(f64::INFINITY * sign),
        _ => {}
    }
    let digits = unsigned.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(unsigned);
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    match digits.parse::<f64>() {
        Ok(number) if is_plain => Ok(number * sign),
        _ => Err(Failed),
    }
}
