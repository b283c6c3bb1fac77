//! From text to tokens.

use super::node::Constant;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    End,
    Name(Box<str>),
    Word(Word),
    Literal(Constant),
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Open,
    Close,
    Comma,
    Plus,
    Minus,
}

/// The reserved words, in any case of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Not,
    And,
    Or,
    Between,
    In,
    Is,
    Null,
    Contains,
    StartsWith,
    EndsWith,
}

const WORDS: [(&str, Word); 10] = [
    ("not", Word::Not),
    ("and", Word::And),
    ("or", Word::Or),
    ("between", Word::Between),
    ("in", Word::In),
    ("is", Word::Is),
    ("null", Word::Null),
    ("contains", Word::Contains),
    ("startswith", Word::StartsWith),
    ("endswith", Word::EndsWith),
];

/// Reads tokens one by one, since what follows a whole condition is never looked at.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Where the next token is looked for, in bytes from 0.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn next(&mut self) -> Result<Token, String> {
        self.skip_blanks();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        let symbol = |token, length| Ok((token, length));
        let (token, length) = match first {
            '=' => symbol(Token::Equal, 1),
            '<' if rest.starts_with("<>") => symbol(Token::Unequal, 2),
            '<' if rest.starts_with("<=") => symbol(Token::LessOrEqual, 2),
            '<' => symbol(Token::Less, 1),
            '>' if rest.starts_with(">=") => symbol(Token::GreaterOrEqual, 2),
            '>' => symbol(Token::Greater, 1),
            '(' => symbol(Token::Open, 1),
            ')' => symbol(Token::Close, 1),
            ',' => symbol(Token::Comma, 1),
            '+' => symbol(Token::Plus, 1),
            '-' => symbol(Token::Minus, 1),
            '\'' => text(rest).ok_or_else(|| format!("the text that begins at byte {} has no end", self.at)),
            '.' | '0'..='9' => number(rest).unwrap_or_else(|| Err(self.unknown(first))),
            'a'..='z' | 'A'..='Z' | '_' | '$' => Ok(name(rest)),
            other => Err(self.unknown(other)),
        }?;
        self.at += length;
        Ok(token)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn unknown(&self, found: char) -> String {
        format!("'{}' at byte {} begins nothing that is known", found.escape_debug(), self.at)
    }

    /// Passes over blanks and comments; a comment that does not end is none.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']).len();
            let comment = match rest.as_bytes() {
                [b'-', b'-', ..] => rest.find(['\n', '\r']).map(|end| end + 1),
                [b'/', b'*', ..] => rest[2..].find("*/").map(|end| 2 + end + 2),
                _ => None,
            };
            match comment.unwrap_or(blanks) {
                0 => return,
                length => self.at += length,
            }
        }
    }
}

/// A text in quotes, in which two quotes stand for one; the longest there is.
fn text(rest: &str) -> Option<(Token, usize)> {
    let mut content = String::new();
    let mut at = 1;
    loop {
        let end = at + rest[at..].find('\'')?;
        content.push_str(&rest[at..end]);
        at = end + 1;
        if !rest[at..].starts_with('\'') {
            return Some((Token::Literal(Constant::Text(content.into())), at));
        }
        content.push('\'');
        at += 1;
    }
}

fn name(rest: &str) -> (Token, usize) {
    let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
    let name = &rest[..length];
    let token = if name.eq_ignore_ascii_case("true") || name.eq_ignore_ascii_case("false") {
        Token::Literal(Constant::Bool(name.eq_ignore_ascii_case("true")))
    } else {
        let word = WORDS.iter().find(|(word, _)| name.eq_ignore_ascii_case(word));
        word.map_or_else(|| Token::Name(name.into()), |(_, word)| Token::Word(*word))
    };
    (token, length)
}

/// A number without sign: the longest of a whole one (`0`, or one that does not begin with 0, with an `l` behind it if
/// wanted) and a fraction. `None` when it is none.
fn number(rest: &str) -> Option<Result<(Token, usize), String>> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let exponent = |from: usize| match bytes.get(from) {
        Some(b'e' | b'E') => {
            let sign = usize::from(matches!(bytes.get(from + 1), Some(b'+' | b'-')));
            match digits((from + 1 + sign).min(bytes.len())) {
                0 => 0,
                count => 1 + sign + count,
            }
        }
        _ => 0,
    };
    let before = digits(0);
    let has_point = bytes.get(before) == Some(&b'.');
    let after = if has_point { digits(before + 1) } else { 0 };
    if has_point && before + after > 0 {
        let length = before + 1 + after;
        return Some(fraction(&rest[..length + exponent(length)]));
    }
    if before == 0 {
        return None;
    }
    match exponent(before) {
        0 => Some(whole(rest, before)),
        length => Some(fraction(&rest[..before + length])),
    }
}

fn fraction(digits: &str) -> Result<(Token, usize), String> {
    let wrong = || format!("the number {digits:.40} is 0 or too large");
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    // Upstream takes the smallest positive number for the lowest one, which leaves out 0.
    if !number.is_finite() || number == 0.0 {
        return Err(wrong());
    }
    Ok((Token::Literal(Constant::Double(number)), digits.len()))
}

fn whole(rest: &str, digits: usize) -> Result<(Token, usize), String> {
    if rest.starts_with('0') {
        return Ok((Token::Literal(Constant::Int(0)), 1));
    }
    let suffix = usize::from(matches!(rest.as_bytes().get(digits), Some(b'l' | b'L')));
    let number: i64 = rest[..digits].parse().map_err(|_| format!("the number {:.40} is too large", &rest[..digits]))?;
    let constant = i32::try_from(number).map_or(Constant::Long(number), Constant::Int);
    Ok((Token::Literal(constant), digits + suffix))
}
