//! Calls the operation of a case.

use inlay::{
    DType, DiagonalScatter, Fill, Item, PutAlongAxis, Reduce, Result, Scatter, SelectScatter,
    Slice, SliceScatter, Tensor,
};
use toml::Value;

use super::case::{Case, dtype_of, scalar};

/// The arguments of a call, with the defaults of the Python signatures.
struct Args<'a> {
    case: &'a Case,
    tensors: &'a [(String, Tensor)],
}

impl Args<'_> {
    fn tensor(&self, name: &str) -> &Tensor {
        let found = self.tensors.iter().find(|(given, _)| given == name);
        &found.unwrap_or_else(|| panic!("{} has no {name}", self.case.name)).1
    }

    /// The list of the tensors x0, x1, … of the case.
    fn tensors(&self, name: &str) -> Vec<&Tensor> {
        let find = |k: usize| {
            let found = self.tensors.iter().find(|(given, _)| *given == format!("{name}{k}"));
            found.map(|(_, tensor)| tensor)
        };
        (0..).map_while(find).collect()
    }

    fn attr(&self, name: &str) -> Option<&Value> {
        self.case.attrs.get(name)
    }

    fn int(&self, name: &str, default: i64) -> i64 {
        self.attr(name).map_or(default, |value| value.as_integer().unwrap())
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.attr(name).map_or(default, |value| value.as_bool().unwrap())
    }

    fn dtype(&self, name: &str, default: DType) -> DType {
        self.attr(name).map_or(default, |value| dtype_of(value, self.case.dtype))
    }

    fn ints(&self, name: &str) -> Vec<i64> {
        let values = self.attr(name).unwrap().as_array().unwrap();
        values.iter().map(|value| value.as_integer().unwrap()).collect()
    }

    fn sizes(&self, name: &str) -> Vec<usize> {
        self.ints(name).into_iter().map(|size| usize::try_from(size).unwrap()).collect()
    }

    /// The axes to reduce over, or `None`.
    fn axes(&self) -> Option<Vec<i64>> {
        self.attr("axis").map(|_| self.list("axis", None, 1).into_iter().flatten().collect())
    }

    /// One number or a list. `None` if it is left out or "none".
    fn list(&self, name: &str, default: Option<i64>, len: usize) -> Vec<Option<i64>> {
        match self.attr(name) {
            None => vec![default; len],
            Some(Value::Array(values)) => values.iter().map(Value::as_integer).collect(),
            Some(value) => vec![value.as_integer(); len],
        }
    }

    fn reduce(&self) -> Option<Reduce> {
        let name = self.attr("reduce").map_or("sum", |value| value.as_str().unwrap());
        Reduce::from_name(name)
    }

    fn scatter(&self) -> Scatter {
        let how = match (self.flag("overwrite", true), self.reduce()) {
            (false, Some(reduce)) => Scatter::reduce(reduce),
            _ => Scatter::overwrite(),
        };
        how.include_self(self.flag("include_self", false)).axis(self.int("axis", 0))
    }

    fn put(&self) -> PutAlongAxis {
        let axis = self.int("axis", 0);
        let how = match self.attr("reduce").and_then(Value::as_str).unwrap_or("assign") {
            "assign" => PutAlongAxis::assign(axis),
            _ => PutAlongAxis::reduce(axis, self.reduce().unwrap()),
        };
        how.include_self(self.flag("include_self", true)).broadcast(self.flag("broadcast", true))
    }

    fn slices(&self) -> SliceScatter {
        let axes = self.list("axis", Some(0), 1);
        let (start, stop, step) = (
            self.list("start", None, axes.len()),
            self.list("stop", None, axes.len()),
            self.list("step", Some(1), axes.len()),
        );
        (0..axes.len()).fold(SliceScatter::default(), |at, k| {
            at.and(axes[k].unwrap(), Slice::new(start[k], stop[k], step[k].unwrap()))
        })
    }

    fn diagonal(&self) -> DiagonalScatter {
        DiagonalScatter {
            offset: self.int("offset", 0),
            axis1: self.int("axis1", 0),
            axis2: self.int("axis2", 1),
        }
    }

    fn fill(&self) -> Fill<'_> {
        Fill::Scalar(scalar(self.attr("value").unwrap()))
    }

    fn key(&self) -> Vec<Item> {
        let items = self.attr("key").unwrap().as_array().unwrap();
        items.iter().map(|item| self.item(item)).collect()
    }

    fn item(&self, item: &Value) -> Item {
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

    fn triangle(&self, make: fn(i64, i64, i64, DType) -> Result<Tensor>) -> Result<Tensor> {
        let row = self.int("row", 0);
        make(row, self.int("col", row), self.int("offset", 0), self.dtype("dtype", DType::I64))
    }
}

/// The result of the case's call; for a call in place, the target.
pub(crate) fn run(case: &Case, tensors: &[(String, Tensor)], in_place: bool) -> Result<Tensor> {
    let args = Args { case, tensors };
    let t = |name: &str| args.tensor(name);
    macro_rules! write {
        ($target:literal, $fresh:ident, $twin:ident, $($arg:expr),*) => {{
            let target = t($target);
            if in_place { target.$twin($($arg),*).cloned() } else { target.$fresh($($arg),*) }
        }};
    }
    match case.op.as_str() {
        "scatter" => {
            write!("x", scatter, scatter_, t("index"), t("updates"), args.scatter())
        }
        "slice_scatter" => write!("x", slice_scatter, slice_scatter_, t("y"), &args.slices()),
        "diagonal_scatter" => {
            write!("input", diagonal_scatter, diagonal_scatter_, t("src"), args.diagonal())
        }
        "masked_scatter" => {
            write!("input", masked_scatter, masked_scatter_, t("mask"), t("source"))
        }
        "put_along_axis" => {
            write!("x", put_along_axis, put_along_axis_, t("index"), t("values"), args.put())
        }
        "masked_fill" => write!("x", masked_fill, masked_fill_, t("mask"), args.fill()),
        "index_fill" => {
            write!("x", index_fill, index_fill_, t("index"), args.int("axis", 0), args.fill())
        }
        "select_scatter" => {
            let at = SelectScatter { axis: args.int("axis", 0), index: args.int("index", 0) };
            write!("x", select_scatter, select_scatter_, t("values"), at)
        }
        "index_add" => {
            write!("x", index_add, index_add_, t("index"), args.int("axis", 0), t("value"))
        }
        "index_put" => {
            let (indices, accumulate) = (args.tensors("indices"), args.flag("accumulate", false));
            write!("x", index_put, index_put_, &indices, t("value"), accumulate)
        }
        "scatter_nd" => Tensor::scatter_nd(t("index"), t("updates"), &args.sizes("shape")),
        "scatter_nd_add" => t("x").scatter_nd_add(t("index"), t("updates")),
        "setitem" => t("x").assign(&args.key(), t("value")).map(|()| t("x").clone()),
        "getitem" => t("x").index(&args.key()),
        "index_select" => t("x").index_select(t("index"), args.int("axis", 0)),
        "take_along_axis" => {
            let broadcast = args.flag("broadcast", true);
            t("x").take_along_axis(t("index"), args.int("axis", 0), broadcast)
        }
        "masked_select" => t("x").masked_select(t("mask")),
        "diagonal" => t("x").diagonal(args.diagonal()),
        "tril" => t("x").tril(args.int("diagonal", 0)),
        "triu" => t("x").triu(args.int("diagonal", 0)),
        "tril_indices" => args.triangle(Tensor::tril_indices),
        "triu_indices" => args.triangle(Tensor::triu_indices),
        "cast" => t("x").cast(args.dtype("dtype", DType::F32)),
        "reshape" => t("x").reshape(&args.ints("shape")),
        "transpose" => t("x").transpose(&args.ints("perm")),
        "broadcast_to" => t("x").broadcast_to(&args.sizes("shape")),
        "where" => t("condition").choose(t("x"), t("y")),
        "add" => t("x").add(t("y")),
        "subtract" => t("x").subtract(t("y")),
        "multiply" => t("x").multiply(t("y")),
        "divide" => t("x").divide(t("y")),
        "equal" => t("x").equal(t("y")),
        "not_equal" => t("x").not_equal(t("y")),
        "less_than" => t("x").less_than(t("y")),
        "less_equal" => t("x").less_equal(t("y")),
        "greater_than" => t("x").greater_than(t("y")),
        "greater_equal" => t("x").greater_equal(t("y")),
        "sum" => t("x").sum(args.axes().as_deref(), args.flag("keepdim", false)),
        "mean" => t("x").mean(args.axes().as_deref(), args.flag("keepdim", false)),
        "prod" => t("x").prod(args.axes().as_deref(), args.flag("keepdim", false)),
        "amax" => t("x").amax(args.axes().as_deref(), args.flag("keepdim", false)),
        "amin" => t("x").amin(args.axes().as_deref(), args.flag("keepdim", false)),
        "concat" => Tensor::concat(&args.tensors("x"), args.int("axis", 0)),
        "stack" => Tensor::stack(&args.tensors("x"), args.int("axis", 0)),
        "zeros" => Tensor::zeros(&args.sizes("shape"), args.dtype("dtype", DType::F32)),
        "ones" => Tensor::ones(&args.sizes("shape"), args.dtype("dtype", DType::F32)),
        "full" => {
            let value = scalar(args.attr("fill_value").unwrap());
            let dtype = args.dtype("dtype", value.dtype());
            Tensor::full(&args.sizes("shape"), value, dtype)
        }
        "arange" => {
            let bound = |name: &str| args.attr(name).map(scalar);
            let step = bound("step").unwrap_or(1.into());
            let (start, end) = match bound("end") {
                Some(end) => (bound("start").unwrap_or(0.into()), end),
                None => (0.into(), bound("start").unwrap()),
            };
            let natural = [start, end, step].map(inlay::Scalar::dtype).into_iter().max().unwrap();
            let natural = natural.max(DType::I64);
            Tensor::arange(start, end, step, args.dtype("dtype", natural))
        }
        other => panic!("no operation is called {other}"),
    }
}
