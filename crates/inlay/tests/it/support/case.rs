//! Reads the cases in `testdata/<op>.toml`. `python/tests/cases.py` describes the format.

use std::path::PathBuf;

use inlay::{Complex64, DType, Kind, Scalar, Tensor};
use toml::{Table, Value};

use super::{Nd, Rng};

/// One call and its expected result or error.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) op: String,
    pub(crate) has_twin: bool,
    /// The tensors of the call in order, then those of lists and keys.
    pub(crate) arrays: Vec<(String, Nd)>,
    pub(crate) attrs: Table,
    /// The dtype that replaces "T".
    pub(crate) dtype: Option<DType>,
    expect: Expect,
    /// What the in-place call gives, if that is something else.
    expect_in_place: Option<Expect>,
}

pub(crate) enum Expect {
    Value(Nd),
    Error { kind: String, contains: Vec<String> },
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// The names of all files, sorted.
pub(crate) fn files() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

/// Returns all cases of a file, one for each dtype that a case lists. Cases that Rust's types rule
/// out are skipped.
pub(crate) fn load(file: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(folder().join(file)).unwrap();
    let table: Table = text.parse().unwrap();
    let cases = table["case"].as_array().unwrap().iter().map(|case| case.as_table().unwrap());
    let cases = cases.filter(|case| !case.contains_key("python_only"));
    cases.flat_map(|case| dtypes(case).into_iter().map(|dtype| read(&table, case, dtype))).collect()
}

fn dtypes(case: &Table) -> Vec<Option<DType>> {
    let group = |wanted: &dyn Fn(Kind) -> bool| {
        DType::ALL.into_iter().filter(|dtype| wanted(dtype.kind())).map(Some).collect()
    };
    match case.get("dtypes") {
        None => vec![None],
        Some(Value::Array(names)) => {
            names.iter().map(|name| Some(name.as_str().unwrap().parse().unwrap())).collect()
        }
        Some(name) => match name.as_str().unwrap() {
            "all" => group(&|_| true),
            "integer" => group(&|kind| kind == Kind::Integer),
            "float" => group(&|kind| kind == Kind::Float),
            "complex" => group(&|kind| kind == Kind::Complex),
            "number" => group(&|kind| kind != Kind::Bool),
            "real" => group(&|kind| matches!(kind, Kind::Integer | Kind::Float)),
            other => panic!("no group of dtypes is called {other}"),
        },
    }
}

fn read(file: &Table, case: &Table, dtype: Option<DType>) -> Case {
    let of = |key: &str| case.get(key).or_else(|| file.get(key));
    let text = |key: &str| of(key).unwrap().as_str().unwrap().to_string();
    let op = text("op");
    let declared = inlay::operations().iter().find(|operation| operation.name == op);
    // The tensor arguments of the call, in order. For `x[...] = value` they are `x` and `value`.
    let order: Vec<&str> = match declared {
        Some(operation) => operation.arguments.iter().map(|argument| argument.name).collect(),
        None => vec!["x", "value"],
    };
    let is_array =
        |value: &Value| value.as_table().is_some_and(|table| table.contains_key("shape"));
    let named =
        case.iter().filter(|(key, value)| *key != "expect" && *key != "attrs" && is_array(value));
    let mut arrays: Vec<(String, Nd)> =
        named.map(|(name, value)| (name.clone(), array(value, dtype))).collect();
    let place = |name: &String| order.iter().position(|input| input == name).unwrap_or(order.len());
    arrays.sort_by_key(|(name, _)| place(name));
    let error = |error: &Value| Expect::Error {
        kind: error["kind"].as_str().unwrap().into(),
        contains: error["contains"].as_array().unwrap().iter().map(word).collect(),
    };
    let expect = match case.get("expect") {
        Some(value) => Expect::Value(array(value, dtype)),
        None => error(&case["error"]),
    };
    Case {
        name: format!("{}[{}]", text("name"), dtype.map_or("", DType::name)),
        op,
        has_twin: declared.is_some_and(|operation| operation.twin.is_some()),
        arrays,
        attrs: case.get("attrs").map_or(Table::new(), |attrs| attrs.as_table().unwrap().clone()),
        dtype,
        expect,
        expect_in_place: case.get("error_in_place").map(error),
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap().into()
}

/// Parses the name of a dtype, or "T".
pub(crate) fn dtype_of(value: &Value, dtype: Option<DType>) -> DType {
    match value.as_str().unwrap() {
        "T" => dtype.unwrap(),
        name => name.parse().unwrap(),
    }
}

fn array(value: &Value, dtype: Option<DType>) -> Nd {
    let dtype = dtype_of(&value["dtype"], dtype);
    let shape = value["shape"].as_array().unwrap().iter();
    let shape: Vec<usize> = shape.map(|size| size.as_integer().unwrap() as usize).collect();
    let count = shape.iter().product();
    let scalars: Vec<Scalar> = match &value["data"] {
        Value::Array(values) => values.iter().map(scalar).collect(),
        Value::Table(table) => match table.get("fill") {
            Some(value) => vec![scalar(value); count],
            None => (0..count).map(|k| Scalar::Int(k as i128)).collect(),
        },
        other => panic!("no data: {other}"),
    };
    let cells = scalars.into_iter().map(|scalar| {
        let scalar = match (dtype, scalar) {
            (DType::Bool, Scalar::Int(value)) => Scalar::Bool(value != 0),
            (_, scalar) => scalar,
        };
        Nd::of_tensor(&Tensor::number("data", "value", scalar, dtype).unwrap()).cells[0]
    });
    Nd::new(dtype, &shape, cells.collect())
}

/// Parses a number in the notation of the files.
pub(crate) fn scalar(value: &Value) -> Scalar {
    let part = |value: &Value| match scalar(value) {
        Scalar::Float(float) => float,
        Scalar::Int(int) => int as f64,
        other => panic!("no part of a complex number: {other:?}"),
    };
    match value {
        Value::Boolean(value) => Scalar::Bool(*value),
        Value::Integer(value) => Scalar::Int((*value).into()),
        Value::Float(value) => Scalar::Float(*value),
        Value::String(text) => match text.parse::<i128>() {
            Ok(int) => Scalar::Int(int),
            Err(_) => Scalar::Float(text.parse().unwrap()),
        },
        Value::Array(parts) => Scalar::Complex(Complex64::new(part(&parts[0]), part(&parts[1]))),
        other => panic!("no number: {other}"),
    }
}

impl Case {
    /// What the call, or the in-place call, gives.
    pub(crate) fn expect(&self, in_place: bool) -> &Expect {
        self.expect_in_place.as_ref().filter(|_| in_place).unwrap_or(&self.expect)
    }

    /// Whether the call needs to know the sizes of a tensor, also in a program.
    pub(crate) fn needs_sizes(&self, name: &str) -> bool {
        match self.op.as_str() {
            "squeeze" => !self.attrs.contains_key("axis"),
            "gather_nd" | "scatter_nd" | "scatter_nd_add" => name == "index",
            _ => false,
        }
    }

    /// Returns the tensors in one of several layouts. Layout 0 is contiguous, the others are
    /// strided.
    pub(crate) fn tensors(&self, layout: usize) -> Vec<(String, Tensor)> {
        let mut rng = Rng(layout as u64);
        let mut lay = |nd: &Nd| if layout == 0 { nd.tensor() } else { nd.scattered(&mut rng) };
        self.arrays.iter().map(|(name, nd)| (name.clone(), lay(nd))).collect()
    }
}

/// Replaces all NaNs by the same NaN, because the bits of a NaN result are not specified.
pub(crate) fn canonical(mut nd: Nd) -> Nd {
    let size = match nd.dtype {
        DType::C64 | DType::C128 => nd.dtype.size() / 2,
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => nd.dtype.size(),
        _ => return nd,
    };
    let nan = |part: &[u8]| match (nd.dtype, part.len()) {
        (DType::BF16, _) => inlay::bf16::from_le_bytes(part.try_into().unwrap()).is_nan(),
        (_, 2) => inlay::f16::from_le_bytes(part.try_into().unwrap()).is_nan(),
        (_, 4) => f32::from_le_bytes(part.try_into().unwrap()).is_nan(),
        _ => f64::from_le_bytes(part.try_into().unwrap()).is_nan(),
    };
    for cell in &mut nd.cells {
        for part in cell[..nd.dtype.size()].chunks_mut(size) {
            if nan(part) {
                part.fill(0xFF);
            }
        }
    }
    nd
}
