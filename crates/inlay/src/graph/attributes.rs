//! The attributes of an operation as text, in the syntax of Python.
//!
//! Operations have no common description of their attributes except `Debug`. Its output is parsed,
//! and written again as keyword arguments.

use inlay_core::DType;

use crate::op::AnyOp;

/// What `Debug` writes of a value.
enum Value<'t> {
    /// A number, a name, or a slice such as `0:1`.
    Word(&'t str),
    /// `[a, b]`, or `(a, b)` if `round`.
    List { round: bool, items: Vec<Value<'t>> },
    /// `Name(a)`
    Tuple(&'t str, Vec<Value<'t>>),
    /// `Name { field: a }`
    Struct(Vec<(&'t str, Value<'t>)>),
}

/// Fields that the name of the operation tells, or that only errors need.
const HIDDEN: [&str; 5] = ["name", "arg", "how", "triangle", "open"];

/// Returns the attributes of an operation, such as `axis=0, reduce='sum'`.
pub(super) fn attributes(op: &AnyOp) -> String {
    let text = format!("{op:?}");
    let mut parser = Parser { rest: &text };
    let mut value = parser.value();
    // The name of the type, or of a type in another, is not an attribute.
    while let Value::Tuple(_, items) = &mut value
        && items.len() == 1
    {
        value = items.remove(0);
    }
    if let Value::Struct(fields) = &mut value {
        mark_open_size(fields);
    }
    match &value {
        Value::Word(_) => String::new(),
        Value::Struct(fields) => keywords(fields),
        value => written(value),
    }
}

/// The size of a shape that follows from the others is written as -1.
fn mark_open_size(fields: &mut [(&str, Value<'_>)]) {
    let open = fields.iter().find_map(|(field, value)| match (*field, value) {
        ("open", value) => written(value).parse::<usize>().ok(),
        _ => None,
    });
    for (field, value) in fields {
        if let ("shape", Value::List { items, .. }) = (*field, value)
            && let Some(size) = open.and_then(|open| items.get_mut(open))
        {
            *size = Value::Word("-1");
        }
    }
}

fn keywords(fields: &[(&str, Value<'_>)]) -> String {
    let shown = fields.iter().filter(|(field, _)| !HIDDEN.contains(field));
    let keyword = |(field, value): &(&str, Value<'_>)| match value {
        Value::Struct(inner) => keywords(inner),
        Value::Word("Assign") => "overwrite=True".into(),
        value => format!("{field}={}", written(value)),
    };
    shown.map(keyword).collect::<Vec<_>>().join(", ")
}

fn written(value: &Value<'_>) -> String {
    let joined = |items: &[Value<'_>]| items.iter().map(written).collect::<Vec<_>>().join(", ");
    match value {
        Value::Word(word) => as_python(word),
        Value::List { round: false, items } => format!("[{}]", joined(items)),
        Value::List { round: true, items } => format!("({})", joined(items)),
        // A size that is not known yet.
        Value::Tuple("Symbol", _) => "?".into(),
        // `Some`, `Known` and the like only wrap their value.
        Value::Tuple(_, items) => joined(items),
        Value::Struct(fields) => format!("({})", keywords(fields)),
    }
}

fn as_python(word: &str) -> String {
    let starts_upper = word.chars().next().is_some_and(char::is_uppercase);
    match word {
        "true" => "True".into(),
        "false" => "False".into(),
        "None" => "None".into(),
        "Ellipsis" => "...".into(),
        "NewAxis" => "None".into(),
        _ if !starts_upper => word.into(),
        _ => match DType::ALL.iter().find(|dtype| format!("{dtype:?}") == word) {
            Some(dtype) => format!("'{dtype}'"),
            None => format!("'{}'", word.to_lowercase()),
        },
    }
}

/// Reads the output of `Debug`. Text that it does not know becomes words, so it never fails.
struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn value(&mut self) -> Value<'t> {
        if let Some(round) = self.opens() {
            let items = self.items(if round { ')' } else { ']' }, Parser::value);
            return Value::List { round, items };
        }
        let word = self.word();
        if self.takes('(') {
            return Value::Tuple(word, self.items(')', Parser::value));
        }
        if self.takes('{') {
            let field = |parser: &mut Self| {
                let end = parser.rest.find(':').unwrap_or(parser.rest.len());
                let (field, rest) = parser.rest.split_at(end);
                parser.rest = rest.strip_prefix(':').unwrap_or(rest);
                (field.trim(), parser.value())
            };
            return Value::Struct(self.items('}', field));
        }
        Value::Word(word)
    }

    /// Takes the opening bracket of a list. Returns whether it is round.
    fn opens(&mut self) -> Option<bool> {
        if self.takes('[') { Some(false) } else { self.takes('(').then_some(true) }
    }

    fn items<T>(&mut self, end: char, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut items = Vec::new();
        while !self.takes(end) && !self.rest.is_empty() {
            items.push(item(self));
            // A character that fits nowhere is skipped, so that the loop ends.
            if !self.takes(',') && !self.rest.starts_with(end) {
                let mut rest = self.rest.chars();
                rest.next();
                self.rest = rest.as_str();
            }
        }
        items
    }

    fn word(&mut self) -> &'t str {
        let end = self.rest.find(['(', ')', '[', ']', '{', '}', ',']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word.trim()
    }

    /// Takes a character if it is next, and the spaces around it.
    fn takes(&mut self, wanted: char) -> bool {
        let found = self.rest.trim_start().strip_prefix(wanted);
        found.inspect(|rest| self.rest = rest.trim_start()).is_some()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "what fails here fails the test")]
mod tests {
    use crate::{DType, Item, Program, Reduce, Scatter, Slice, SliceScatter, Tensor};

    #[test]
    fn attributes_are_written_as_python_would() {
        let program = Program::new();
        let x = program.data("x", &[None, Some(2)], DType::F32).unwrap();
        let index = Tensor::from_slice(&[0i64], &[1]).unwrap();
        let row = x.slice(&SliceScatter::new(0, Slice::new(0, 1, 1))).unwrap();
        let y = x.scatter(&index, &row, Scatter::reduce(Reduce::Amax)).unwrap();
        let y = y.scatter(&index, &row, Scatter::overwrite()).unwrap();
        y.index(&[Item::Ellipsis, Item::At(-1), Item::NewAxis]).unwrap();
        y.index(&[Item::Slice(Slice::new(1, None, 2))]).unwrap();
        y.cast(DType::F64).unwrap().sum(1, true).unwrap();
        y.reshape(&[-1, 1]).unwrap().transpose(&[1, 0]).unwrap();
        y.add(&y).unwrap().copy().unwrap();
        let text = program.to_string();
        for part in [
            "(x, axes=[(0, 0:1)])",
            ", axis=0, reduce='amax', include_self=",
            ", axis=0, overwrite=True)",
            ", [..., -1, None])",
            ", [1::2])",
            ", dtype='float64')",
            ", axes=[1], keepdim=True)",
            ", shape=[-1, 1])",
            ", perm=[1, 0])",
            "add(%4, %4)",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        for rust in ["Some(", "Known(", "Symbol", "true", "false", "{", "::2::"] {
            assert!(!text.contains(rust), "{rust} is in\n{text}");
        }
    }
}
