//! The text of a function: `scatter(@, @, @, overwrite=False)`, `vjp(101; ...)`, `vmap(0, _; ...)`,
//! `chain(...; ...)`.
//!
//! `@` is a tensor and `[@, @]` a list of tensors, in the order of the arguments. Other arguments
//! are written `name=value` as in Python, without those that were left out.

use inlay_core::{DType, Error, Reduce, Result};
use num_complex::Complex64;
use smallvec::SmallVec;

use super::{Form, Function, Slot, operation};
use crate::declare::{ArgumentKind, Bounds, Value};
use crate::{Device, Scalar};

/// Returns the text of a form.
pub(super) fn of(form: &Form) -> String {
    match form {
        Form::Call { operation, arguments } => {
            let mut parts: Vec<String> = Vec::new();
            let mut named = Vec::new();
            for (argument, slot) in operation.arguments.iter().zip(arguments) {
                match slot {
                    Slot::Tensor => parts.push("@".into()),
                    Slot::Tensors(count) => {
                        parts.push(format!("[{}]", vec!["@"; *count].join(", ")))
                    }
                    Slot::Value(Value::Absent) => {}
                    Slot::Value(value) => named.push(format!("{}={}", argument.name, shown(value))),
                }
            }
            parts.extend(named);
            format!("{}({})", operation.name, parts.join(", "))
        }
        Form::Vjp { of, wanted } => {
            let mask: String =
                wanted.iter().map(|&wanted| if wanted { '1' } else { '0' }).collect();
            format!("vjp({mask}; {})", of.text())
        }
        Form::Vmap { of, axes } => {
            let axis = |axis: &Option<usize>| axis.map_or("_".into(), |axis| axis.to_string());
            let axes: Vec<String> = axes.iter().map(axis).collect();
            format!("vmap({}; {})", axes.join(", "), of.text())
        }
        Form::Chain { steps } => {
            let steps: Vec<&str> = steps.iter().map(Function::text).collect();
            format!("chain({})", steps.join("; "))
        }
    }
}

fn shown(value: &Value<'_>) -> String {
    let flag = |flag: bool| if flag { "True" } else { "False" }.to_owned();
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    match value {
        Value::Int(value) => value.to_string(),
        Value::Flag(value) => flag(*value),
        Value::Reduce(None) => "'assign'".into(),
        Value::Reduce(Some(reduce)) => format!("'{}'", reduce.name()),
        Value::DType(dtype) => format!("'{dtype}'"),
        Value::Device(device) => format!("'{}'", device.name()),
        Value::Scalar(Scalar::Bool(value)) => flag(*value),
        Value::Scalar(Scalar::Int(value)) => value.to_string(),
        // Rust prints the shortest digits that read back as the same number.
        Value::Scalar(Scalar::Float(value)) => format!("{value:?}"),
        Value::Scalar(Scalar::Complex(value)) => format!("complex({:?}, {:?})", value.re, value.im),
        Value::Ints(values) => list(values.iter().map(i64::to_string).collect()),
        Value::Bounds(Bounds::One(value)) => value.to_string(),
        Value::Bounds(Bounds::List(items)) => {
            let item = |item: &Option<i64>| item.map_or("None".into(), |item| item.to_string());
            list(items.iter().map(item).collect())
        }
        Value::Absent | Value::Tensor(_) | Value::Tensors(_) => {
            unreachable!("tensors and absent values have no text")
        }
    }
}

/// Reads the text of a function.
pub(super) fn parse(text: &str) -> Result<Function> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let function = reader.function()?;
    match reader.rest().is_empty() {
        true => Ok(function),
        false => Err(reader.unexpected("the end of the text")),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text[self.at..].trim_start()
    }

    fn unexpected(&self, expected: &str) -> Error {
        let mut found: String = self.rest().chars().take(20).collect();
        if found.is_empty() {
            found.push_str("the end");
        }
        let mut text: String = self.text.chars().take(200).collect();
        if text.len() < self.text.len() {
            text.push_str("...");
        }
        let problem = format!("{found:?} in the text {text:?}, expected {expected}");
        Error::Function { op: "function", problem }
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().len();
    }

    /// Takes `token` if it comes next.
    fn takes(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.takes(token) { Ok(()) } else { Err(self.unexpected(&format!("{token:?}"))) }
    }

    /// Takes characters while they fit.
    fn word(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        self.skip_spaces();
        let rest = self.rest();
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn name(&mut self) -> &'t str {
        self.word(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    /// Reads items up to `end`.
    fn items<T>(
        &mut self,
        end: &str,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.takes(end) {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn function(&mut self) -> Result<Function> {
        self.depth += 1;
        // The call itself is one more than the derivatives and batches around it.
        if self.depth > Function::DEEPEST + 1 {
            return Err(self.unexpected("fewer nested functions"));
        }
        let name = self.name();
        self.expect("(")?;
        let function = match name {
            "vjp" => {
                let mask = self.word(|c| c == '0' || c == '1');
                let wanted: SmallVec<[bool; 4]> = mask.chars().map(|c| c == '1').collect();
                self.expect(";")?;
                let of = self.function()?;
                self.expect(")")?;
                of.vjp(&wanted)?
            }
            "vmap" => {
                let axes = self.items(";", |reader| {
                    if reader.takes("_") { Ok(None) } else { reader.number().map(Some) }
                })?;
                let of = self.function()?;
                self.expect(")")?;
                of.vmap(&axes)?
            }
            "chain" => {
                let mut steps = vec![self.function()?];
                while !self.takes(")") {
                    self.expect(";")?;
                    steps.push(self.function()?);
                }
                Function::chain(&steps)?
            }
            name => self.call(name)?,
        };
        self.depth -= 1;
        Ok(function)
    }

    fn call(&mut self, name: &str) -> Result<Function> {
        let operation = operation(name)?;
        let mut values = vec![Value::Absent; operation.arguments.len()];
        let mut tensors = operation.arguments.iter().filter(|argument| argument.kind.has_tensors());
        let mut lists = Vec::new();
        self.items(")", |reader| {
            if reader.takes("@") {
                return match tensors.next() {
                    Some(argument) if argument.kind.is_tensor() => Ok(()),
                    _ => Err(reader.unexpected("as many tensors as the operation takes")),
                };
            }
            if reader.takes("[") {
                let count = reader.items("]", |reader| reader.expect("@"))?.len();
                lists.push(count);
                return match tensors.next() {
                    Some(argument) if !argument.kind.is_tensor() => Ok(()),
                    _ => Err(reader.unexpected("as many lists as the operation takes")),
                };
            }
            let key = reader.name();
            let place = operation.arguments.iter().position(|argument| argument.name == key);
            let Some(place) = place else {
                return Err(reader.unexpected("an argument of the operation"));
            };
            reader.expect("=")?;
            values[place] = reader.value(operation.arguments[place].kind)?;
            Ok(())
        })?;
        if tensors.next().is_some() {
            return Err(self.unexpected("as many tensors as the operation takes"));
        }
        Function::new(name, &values, &lists)
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T> {
        let before = self.at;
        let word = self.word(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        word.parse().map_err(|_| {
            self.at = before;
            self.unexpected("a number")
        })
    }

    fn quoted(&mut self) -> Result<&'t str> {
        self.expect("'")?;
        let word = self.word(|c| c != '\'');
        self.expect("'")?;
        Ok(word)
    }

    fn flag(&mut self) -> Result<bool> {
        match (self.takes("True"), self.takes("False")) {
            (false, false) => Err(self.unexpected("True or False")),
            (flag, _) => Ok(flag),
        }
    }

    fn value(&mut self, kind: ArgumentKind) -> Result<Value<'static>> {
        use ArgumentKind as Kind;
        Ok(match kind {
            Kind::Int | Kind::Bound | Kind::Extent => Value::Int(self.number()?),
            Kind::Flag => Value::Flag(self.flag()?),
            Kind::Axes | Kind::Ints | Kind::Sizes => {
                self.expect("[")?;
                Value::Ints(self.items("]", Reader::number)?)
            }
            Kind::AxisList | Kind::BoundList if self.takes("[") => {
                let bound = |reader: &mut Reader<'t>| match reader.takes("None") {
                    true => Ok(None),
                    false => reader.number().map(Some),
                };
                Value::Bounds(Bounds::List(self.items("]", bound)?))
            }
            Kind::AxisList | Kind::BoundList => Value::Bounds(Bounds::One(self.number()?)),
            Kind::Reduce | Kind::ReduceOrAssign => {
                let name = self.quoted()?;
                let reduce = Reduce::from_name(name);
                if reduce.is_none() && !(kind == Kind::ReduceOrAssign && name == "assign") {
                    return Err(self.unexpected("a reduction before it"));
                }
                Value::Reduce(reduce)
            }
            Kind::DType => match self.quoted()?.parse::<DType>() {
                Ok(dtype) => Value::DType(dtype),
                Err(_) => return Err(self.unexpected("a dtype before it")),
            },
            Kind::Device => match self.quoted()? {
                "cpu" => Value::Device(Device::Cpu),
                "gpu" => Value::Device(Device::Gpu),
                _ => return Err(self.unexpected("a device before it")),
            },
            Kind::Scalar => Value::Scalar(self.scalar()?),
            Kind::Tensor
            | Kind::Like
            | Kind::Operand
            | Kind::Index
            | Kind::Mask
            | Kind::Tensors
            | Kind::Indices
            | Kind::Label => return Err(self.unexpected("an argument that is not a tensor")),
        })
    }

    fn scalar(&mut self) -> Result<Scalar> {
        if self.rest().starts_with(['T', 'F']) {
            return Ok(Scalar::Bool(self.flag()?));
        }
        if self.takes("complex") {
            self.expect("(")?;
            let re = self.number()?;
            self.expect(",")?;
            let im = self.number()?;
            self.expect(")")?;
            return Ok(Scalar::Complex(Complex64::new(re, im)));
        }
        let before = self.at;
        match self.number::<i128>() {
            Ok(value) => Ok(Scalar::Int(value)),
            Err(_) => {
                self.at = before;
                self.number::<f64>().map(Scalar::Float)
            }
        }
    }
}
