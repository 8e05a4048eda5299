//! Calls the operation of a case through its declaration.

use std::borrow::Cow;

use inlay::{Argument, ArgumentKind, Bounds, Item, Reduce, Result, Slice, Tensor, Value};
use toml::Value as Toml;

use super::case::{Case, dtype_of, scalar};

/// The arguments of a call. Arguments that a case leaves out get their declared defaults.
struct Given<'a> {
    case: &'a Case,
    tensors: &'a [(String, Tensor)],
}

impl<'a> Given<'a> {
    fn find(&self, name: &str) -> Option<&'a Tensor> {
        self.tensors.iter().find(|(given, _)| given == name).map(|(_, tensor)| tensor)
    }

    fn tensor(&self, name: &str) -> &'a Tensor {
        self.find(name).unwrap_or_else(|| panic!("{} has no {name}", self.case.name))
    }

    /// Returns the value of an argument: the tensor of that name, the list of the tensors x0, x1,
    /// …, or an attribute. If a number is given for a tensor, it becomes a tensor of one element.
    fn value(&self, argument: &Argument) -> Result<Value<'a>> {
        use ArgumentKind as Kind;
        let attr = self.case.attrs.get(argument.name);
        if matches!(argument.kind, Kind::Tensors | Kind::Indices) {
            let numbered = (0..).map_while(|k| self.find(&format!("{}{k}", argument.name)));
            return Ok(Value::Tensors(numbered.map(Cow::Borrowed).collect()));
        }
        let Some(attr) = attr else {
            return Ok(match argument.kind.is_tensor() {
                true => self.tensor(argument.name).into(),
                false => Value::Absent,
            });
        };
        let int = || attr.as_integer().unwrap();
        let ints = || match attr {
            Toml::Array(values) => values.iter().map(|v| v.as_integer().unwrap()).collect(),
            _ => std::iter::once(int()).collect(),
        };
        let bounds = || match attr {
            Toml::Array(values) => Bounds::List(values.iter().map(Toml::as_integer).collect()),
            _ => Bounds::One(int()),
        };
        Ok(match argument.kind {
            kind if kind.is_tensor() => {
                let (op, dtype) = (self.operation().name, self.tensors[0].1.dtype());
                Tensor::number(op, argument.name, scalar(attr), dtype)?.into()
            }
            Kind::Int | Kind::Bound | Kind::Extent => Value::Int(int()),
            Kind::Axes | Kind::Ints | Kind::Sizes => Value::Ints(ints()),
            Kind::AxisList | Kind::BoundList => Value::Bounds(bounds()),
            Kind::Flag => Value::Flag(attr.as_bool().unwrap()),
            Kind::Reduce | Kind::ReduceOrAssign => {
                Value::Reduce(Reduce::from_name(attr.as_str().unwrap()))
            }
            Kind::DType => Value::DType(dtype_of(attr, self.case.dtype)),
            Kind::Scalar => Value::Scalar(scalar(attr)),
            kind => panic!("cases don't say a {kind:?}"),
        })
    }

    fn operation(&self) -> &'static inlay::Operation {
        let name = self.case.op.as_str();
        let found = inlay::operations().iter().find(|operation| operation.name == name);
        found.unwrap_or_else(|| panic!("no operation is called {name}"))
    }

    fn key(&self) -> Vec<Item> {
        let items = self.case.attrs["key"].as_array().unwrap();
        items.iter().map(|item| self.item(item)).collect()
    }

    fn item(&self, item: &Toml) -> Item {
        if let Some(index) = item.as_integer() {
            return Item::At(index);
        }
        match item.as_str().unwrap() {
            "..." => Item::Ellipsis,
            "none" => Item::NewAxis,
            text => match text.strip_prefix('@') {
                Some(name) => Item::Tensor(self.tensor(name).clone()),
                None => {
                    let mut parts = text.split(':').map(|part| part.parse::<i64>().ok());
                    let mut next = || parts.next().flatten();
                    Item::Slice(Slice { start: next(), stop: next(), step: next().unwrap_or(1) })
                }
            },
        }
    }
}

/// Makes the call of a case, and returns its result. For an in-place call, that is the target.
pub(crate) fn run(case: &Case, tensors: &[(String, Tensor)], in_place: bool) -> Result<Tensor> {
    let given = Given { case, tensors };
    let x = || given.tensor("x");
    match case.op.as_str() {
        "setitem" => return x().assign(&given.key(), given.tensor("value")).map(|()| x().clone()),
        "getitem" => return x().index(&given.key()),
        _ => {}
    }
    let operation = given.operation();
    let values = operation.arguments.iter().map(|argument| given.value(argument));
    let values = values.collect::<Result<Vec<Value<'_>>>>()?;
    if in_place { operation.call_in_place(&values) } else { operation.call(&values) }
}
