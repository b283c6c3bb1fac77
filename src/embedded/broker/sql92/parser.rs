//! From tokens to a tree. Every rule of the grammar is a method.

use super::Sql92;
use super::lexer::{Lexer, Token, Word};
use super::node::{Constant, Node, Place, Relation};
use std::collections::HashMap;

/// Deepest nesting, of brackets and of what a tree is made of.
const MAX_DEPTH: usize = 100;

pub(super) fn parse(text: &str) -> Result<Sql92, String> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut parser = Parser { lexer, token, names: HashMap::new(), nodes: 0, depth: 0 };
    let tree = parser.or()?;
    let root = parser.boolean(tree)?.node;
    Ok(Sql92 { root, names: parser.names, nodes: parser.nodes })
}

/// A node and how deep it is, so that evaluation and drop need little stack.
struct Tree {
    node: Node,
    depth: usize,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    names: HashMap<Box<str>, usize>,
    nodes: usize,
    depth: usize,
}

impl Parser<'_> {
    fn or(&mut self) -> Result<Tree, String> {
        self.chain(Word::Or, Self::and, Node::Or)
    }

    fn and(&mut self) -> Result<Tree, String> {
        self.chain(Word::And, Self::equality, Node::And)
    }

    /// One part, or several with a word between them. They are decided from left to right, so one list does.
    fn chain(
        &mut self,
        word: Word,
        part: fn(&mut Self) -> Result<Tree, String>,
        node: fn(Vec<Node>) -> Node,
    ) -> Result<Tree, String> {
        let first = part(self)?;
        if self.token != Token::Word(word) {
            return Ok(first);
        }
        let first = self.boolean(first)?;
        let (mut parts, mut depth) = (vec![first.node], first.depth);
        while self.take(&Token::Word(word))? {
            let next = part(self)?;
            let next = self.boolean(next)?;
            depth = depth.max(next.depth);
            parts.push(next.node);
        }
        self.tree(node(parts), depth)
    }

    fn equality(&mut self) -> Result<Tree, String> {
        let mut left = self.comparison()?;
        loop {
            let negated = match self.token {
                Token::Equal => false,
                Token::Unequal => true,
                Token::Word(Word::Is) => {
                    self.advance()?;
                    let negated = self.take(&Token::Word(Word::Not))?;
                    self.expect(&Token::Word(Word::Null), "NULL")?;
                    let null = Tree { node: Node::Constant(Constant::Null), depth: 0 };
                    left = self.equal(left, null, negated)?;
                    continue;
                }
                _ => return Ok(left),
            };
            self.advance()?;
            let right = self.comparison()?;
            let is_null = |tree: &Tree| matches!(tree.node, Node::Constant(Constant::Null));
            if is_null(&left) || is_null(&right) {
                return Err("NULL cannot be compared by = or <>; write IS NULL".into());
            }
            if let (Node::Constant(Constant::Bool(_)), Node::Constant(right)) = (&left.node, &right.node)
                && !matches!(right, Constant::Bool(_))
            {
                return Err("TRUE or FALSE cannot be compared with a number or a text".into());
            }
            left = self.equal(left, right, negated)?;
        }
    }

    fn comparison(&mut self) -> Result<Tree, String> {
        let mut left = self.unary()?;
        loop {
            let relation = match self.token {
                Token::Less => Relation::Less,
                Token::LessOrEqual => Relation::LessOrEqual,
                Token::Greater => Relation::Greater,
                Token::GreaterOrEqual => Relation::GreaterOrEqual,
                Token::Word(Word::Not | Word::Between | Word::In)
                | Token::Word(Word::Contains | Word::StartsWith | Word::EndsWith) => {
                    let negated = self.take(&Token::Word(Word::Not))?;
                    left = self.special(left, negated)?;
                    continue;
                }
                _ => return Ok(left),
            };
            self.advance()?;
            let right = self.unary()?;
            ordered(&left)?;
            ordered(&right)?;
            let depth = left.depth.max(right.depth);
            left = self.tree(Node::Relation(relation, Box::new([left.node, right.node])), depth)?;
        }
    }

    /// What may stand behind `NOT` inside a comparison.
    fn special(&mut self, left: Tree, negated: bool) -> Result<Tree, String> {
        let place = match self.token {
            Token::Word(Word::Between) => {
                self.advance()?;
                return self.between(left, negated);
            }
            Token::Word(Word::In) => {
                self.advance()?;
                return self.list(left, negated);
            }
            Token::Word(Word::Contains) => Place::Anywhere,
            Token::Word(Word::StartsWith) => Place::AtStart,
            Token::Word(Word::EndsWith) => Place::AtEnd,
            _ => return Err(self.expected("BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH")),
        };
        self.advance()?;
        let text = self.text()?;
        self.tree(Node::Search { place, inside: Box::new(left.node), text, negated }, left.depth)
    }

    fn between(&mut self, value: Tree, negated: bool) -> Result<Tree, String> {
        let low = self.unary()?;
        self.expect(&Token::Word(Word::And), "AND")?;
        let high = self.unary()?;
        [&value, &low, &high].into_iter().try_for_each(ordered)?;
        // NOT BETWEEN takes its ends as they are.
        if let (Some(low), Some(high)) = (low.node.constant_number(), high.node.constant_number())
            && low > high
            && !negated
        {
            return Err(format!("BETWEEN: {low} is more than {high}"));
        }
        let depth = value.depth.max(low.depth).max(high.depth);
        self.tree(Node::Between { parts: Box::new([value.node, low.node, high.node]), negated }, depth)
    }

    fn list(&mut self, left: Tree, negated: bool) -> Result<Tree, String> {
        self.expect(&Token::Open, "(")?;
        let mut texts = vec![self.text()?];
        while self.take(&Token::Comma)? {
            texts.push(self.text()?);
        }
        self.expect(&Token::Close, ")")?;
        let Node::Property(property) = left.node else {
            return Err("IN needs a property on its left".into());
        };
        self.nodes += texts.len();
        self.tree(Node::In { property, texts, negated }, left.depth)
    }

    fn unary(&mut self) -> Result<Tree, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} levels are nested"));
        }
        let tree = match self.token {
            Token::Plus => {
                self.advance()?;
                self.unary()?
            }
            Token::Minus => {
                self.advance()?;
                let inner = self.unary()?;
                self.tree(Node::Negate(Box::new(inner.node)), inner.depth)?
            }
            Token::Word(Word::Not) => {
                self.advance()?;
                let inner = self.unary()?;
                let inner = self.boolean(inner)?;
                self.tree(Node::Not(Box::new(inner.node)), inner.depth)?
            }
            _ => self.primary()?,
        };
        self.depth -= 1;
        Ok(tree)
    }

    fn primary(&mut self) -> Result<Tree, String> {
        let node = match &self.token {
            Token::Literal(constant) => Node::Constant(constant.clone()),
            Token::Word(Word::Null) => Node::Constant(Constant::Null),
            Token::Name(name) => {
                let next = self.names.len();
                Node::Property(*self.names.entry(name.clone()).or_insert(next))
            }
            Token::Open => {
                self.advance()?;
                let inner = self.or()?;
                self.expect(&Token::Close, ")")?;
                return Ok(inner);
            }
            _ => return Err(self.expected("a property, a value or a bracket")),
        };
        self.advance()?;
        self.tree(node, 0)
    }

    fn text(&mut self) -> Result<Box<str>, String> {
        let Token::Literal(Constant::Text(text)) = &self.token else { return Err(self.expected("a text in quotes")) };
        let text = text.clone();
        self.advance()?;
        Ok(text)
    }

    fn equal(&mut self, left: Tree, right: Tree, negated: bool) -> Result<Tree, String> {
        let depth = left.depth.max(right.depth);
        let equal = self.tree(Node::Equal(Box::new([left.node, right.node])), depth)?;
        if negated { self.tree(Node::Not(Box::new(equal.node)), equal.depth) } else { Ok(equal) }
    }

    /// The tree where a truth value is needed.
    fn boolean(&mut self, tree: Tree) -> Result<Tree, String> {
        match tree.node {
            Node::Property(_) => self.tree(Node::Cast(Box::new(tree.node)), tree.depth),
            node if node.is_boolean() => Ok(Tree { node, ..tree }),
            _ => Err("a number or a text stands where a condition is needed".into()),
        }
    }

    fn tree(&mut self, node: Node, below: usize) -> Result<Tree, String> {
        self.nodes += 1;
        if below >= MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} levels are nested"));
        }
        Ok(Tree { node, depth: below + 1 })
    }

    fn advance(&mut self) -> Result<(), String> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    fn take(&mut self, token: &Token) -> Result<bool, String> {
        let is_there = self.token == *token;
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    fn expect(&mut self, token: &Token, name: &str) -> Result<(), String> {
        if self.take(token)? { Ok(()) } else { Err(self.expected(name)) }
    }

    fn expected(&self, what: &str) -> String {
        match self.token {
            Token::End => format!("the condition ends where {what} is needed"),
            _ => format!("{what} is needed before byte {}", self.lexer.position()),
        }
    }
}

/// Refuses what has no order.
fn ordered(tree: &Tree) -> Result<(), String> {
    let has_order = match &tree.node {
        Node::Constant(_) => tree.node.constant_number().is_some(),
        node => !node.is_boolean(),
    };
    if has_order { Ok(()) } else { Err("only numbers and properties can be compared by size".into()) }
}
