//! Functions over a batch: one call on tensors with one more axis, where the operation allows it.

use inlay_core::{Dim, Dims, Error, Result, Shape, ShapeText};
use smallvec::SmallVec;

use super::evaluate::values;
use super::{Form, Function, Slot};
use crate::declare::{Argument, ArgumentKind, Batch, Bounds, Operation, Preset, Value};
use crate::graph::Program;
use crate::{PutAlongAxis, Reduce, Tensor};

/// Returns the results of a function for each item of a batch, stacked along the first axis. `axes`
/// are the positions of the batch axis in the inputs; `None` for an input that all items share.
pub(super) fn evaluate(
    of: &Function,
    axes: &[Option<usize>],
    inputs: &[Tensor],
    program: Option<&Program>,
) -> Result<Vec<Tensor>> {
    let op = of.operation().name;
    let mut moved = Vec::with_capacity(inputs.len());
    for (input, axis) in inputs.iter().zip(axes) {
        moved.push(match axis {
            Some(axis) if *axis < input.rank() => to_front(input, *axis)?,
            Some(_) => return Err(exceeds(op)),
            None => input.clone(),
        });
    }
    let sizes = moved.iter().zip(axes).filter(|(_, axis)| axis.is_some());
    same_sizes(op, sizes.filter_map(|(input, _)| input.dims()[0].known()))?;
    let batch = Items { inputs: moved, batched: axes.iter().map(Option::is_some).collect() };
    match &of.0.form {
        Form::Call { operation, arguments } => batch.call(operation, arguments, of, program),
        Form::Vjp { of, wanted } => batch.gradients(of, wanted, program),
        Form::Vmap { of, axes } => batch.nested(of, axes, program),
        Form::Chain { steps } => {
            super::chain::evaluate_batch(steps, &batch.inputs, &batch.batched, program)
        }
    }
}

/// The error for a batch axis that an input does not have.
fn exceeds(op: &'static str) -> Error {
    super::problem(op, "a batch axis exceeds the rank")
}

/// Fails unless all batches have the same number of items.
fn same_sizes(op: &'static str, mut sizes: impl Iterator<Item = usize>) -> Result<()> {
    let Some(first) = sizes.next() else { return Ok(()) };
    match sizes.find(|size| *size != first) {
        None => Ok(()),
        Some(other) => {
            let text = format!("vmap got batches of {first} and {other} items, expected one size");
            Err(super::problem(op, &text))
        }
    }
}

impl Function {
    /// Fails unless the inputs of each batch have the same number of items, and each gradient has
    /// the shape of its result. A trace with open sizes can't tell, and might broadcast.
    pub(super) fn expect_shapes(&self, shapes: &[&[usize]]) -> Result<()> {
        let op = self.operation().name;
        let (of, axes) = match &self.0.form {
            Form::Call { .. } | Form::Chain { .. } => return Ok(()),
            Form::Vjp { of, .. } => {
                let (inputs, others) = shapes.split_at(of.inputs());
                let (results, upstream) = others.split_at(of.outputs());
                if let Some(at) = (0..results.len()).find(|&at| results[at] != upstream[at]) {
                    let (got, expected) = (ShapeText::of(upstream[at]), ShapeText::of(results[at]));
                    return Err(Error::Shape { op, arg: "grad", got, expected });
                }
                return of.expect_shapes(inputs);
            }
            Form::Vmap { of, axes } => (of, axes),
        };
        let pairs = || shapes.iter().zip(axes);
        let size = |(shape, axis): (&&[usize], &Option<usize>)| shape.get((*axis)?).copied();
        same_sizes(op, pairs().filter_map(size))?;
        let item = |(shape, axis): (&&[usize], &Option<usize>)| {
            let others = shape.iter().enumerate().filter(|(other, _)| Some(*other) != *axis);
            others.map(|(_, size)| *size).collect()
        };
        let items: SmallVec<[Shape; 4]> = pairs().map(item).collect();
        of.expect_shapes(&items.iter().map(|item| &**item).collect::<SmallVec<[&[usize]; 4]>>())
    }
}

/// Moves an axis to the front.
fn to_front(x: &Tensor, axis: usize) -> Result<Tensor> {
    match axis {
        0 => Ok(x.clone()),
        _ => {
            let others = (0..x.rank()).filter(|other| *other != axis);
            x.transpose(std::iter::once(axis).chain(others).collect::<Vec<_>>())
        }
    }
}

/// The inputs of a function over a batch.
struct Items {
    /// The batch axis of each batched input is the first.
    inputs: Vec<Tensor>,
    batched: SmallVec<[bool; 4]>,
}

impl Items {
    /// The number of items.
    fn size(&self) -> Dim {
        let mut batched = self.inputs.iter().zip(&self.batched).filter(|(_, batched)| **batched);
        match batched.next() {
            Some((input, _)) => input.dims()[0],
            None => unreachable!("at least one input is batched"),
        }
    }

    /// The rank of input `k` without the batch axis.
    fn rank(&self, k: usize) -> usize {
        self.inputs[k].rank() - usize::from(self.batched[k])
    }

    /// Input `k` with a batch axis.
    fn stretched(&self, k: usize) -> Result<Tensor> {
        let input = &self.inputs[k];
        if self.batched[k] {
            return Ok(input.clone());
        }
        let shape: Dims = std::iter::once(self.size()).chain(input.dims()).collect();
        input.stretched_to(&shape)
    }

    /// The gradients of a function over a batch are those of the function over a batch. An input
    /// that items share has one gradient for each item, so it is repeated.
    fn gradients(
        &self,
        of: &Function,
        wanted: &[bool],
        program: Option<&Program>,
    ) -> Result<Vec<Tensor>> {
        if !wanted.contains(&true) {
            return Ok(Vec::new());
        }
        let mut axes: SmallVec<[Option<usize>; 4]> = SmallVec::new();
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (k, wanted) in wanted.iter().enumerate() {
            let repeat = self.batched[k] || *wanted;
            inputs.push(if repeat { self.stretched(k)? } else { self.inputs[k].clone() });
            axes.push(repeat.then_some(0));
        }
        for k in of.inputs()..self.inputs.len() {
            inputs.push(self.stretched(k)?);
        }
        of.vmap(&axes)?.vjp(wanted)?.evaluate(&inputs, program)
    }

    /// Two batches are one batch of all pairs.
    fn nested(
        &self,
        of: &Function,
        axes: &[Option<usize>],
        program: Option<&Program>,
    ) -> Result<Vec<Tensor>> {
        let outer = self.size();
        let mut inner = None;
        for (k, axis) in axes.iter().enumerate() {
            if let Some(axis) = axis {
                if *axis >= self.rank(k) {
                    return Err(exceeds(of.operation().name));
                }
                inner = Some(self.inputs[k].dims()[axis + usize::from(self.batched[k])]);
            }
        }
        let Some(inner) = inner else { unreachable!("at least one input is batched") };
        let mut inputs = Vec::with_capacity(self.inputs.len());
        let mut merged: SmallVec<[Option<usize>; 4]> = SmallVec::new();
        for (k, axis) in axes.iter().enumerate() {
            if axis.is_none() && !self.batched[k] {
                inputs.push(self.inputs[k].clone());
                merged.push(None);
                continue;
            }
            let whole = self.stretched(k)?;
            // The inner batch axis is the second one.
            let whole = match axis {
                Some(axis) => {
                    let others = (1..whole.rank()).filter(|other| *other != axis + 1);
                    let order = [0, axis + 1].into_iter().chain(others);
                    whole.transpose(order.collect::<Vec<_>>())?
                }
                None => {
                    let dims = whole.dims();
                    let shape: Dims =
                        [dims[0], inner].into_iter().chain(dims[1..].iter().copied()).collect();
                    whole.unsqueeze(1)?.stretched_to(&shape)?
                }
            };
            inputs.push(whole.merged(0, 2)?);
            merged.push(Some(0));
        }
        let split = |result: Tensor| {
            let dims = result.dims();
            let shape: Dims = [outer, inner].into_iter().chain(dims[1..].iter().copied()).collect();
            result.shaped(&shape)
        };
        of.vmap(&merged)?.evaluate(&inputs, program)?.into_iter().map(split).collect()
    }

    /// Calls an operation: once if its rule and its arguments allow it, else once for each item.
    fn call(
        &self,
        operation: &'static Operation,
        arguments: &[Slot],
        of: &Function,
        program: Option<&Program>,
    ) -> Result<Vec<Tensor>> {
        let folded = match (operation.batch, operation.name) {
            (Batch::Elements, _) => Some(self.elements(operation, arguments)?),
            (Batch::Axes, _) => self.axes(operation, arguments)?,
            (Batch::Rows, _) => self.rows(operation, arguments)?,
            (Batch::Each, "reshape" | "broadcast_to" | "transpose") => {
                self.shape(operation, arguments)?
            }
            (Batch::Each, _) => None,
        };
        match folded {
            Some(result) => Ok(vec![result]),
            None => self.each(of, program),
        }
    }

    fn run(operation: &Operation, arguments: &[Slot], inputs: &[Tensor]) -> Result<Tensor> {
        let inputs: SmallVec<[&Tensor; 4]> = inputs.iter().collect();
        operation.call_bound(false, &values(arguments, &inputs))
    }

    /// Broadcasting aligns the last axes, so a batched input of lower rank gets axes after the first.
    fn elements(&self, operation: &Operation, arguments: &[Slot]) -> Result<Tensor> {
        let rank = (0..self.inputs.len()).map(|k| self.rank(k)).max().unwrap_or(0);
        let aligned = |k: usize| match self.batched[k] && self.rank(k) < rank {
            true => self.inputs[k].unsqueeze((1..=rank - self.rank(k)).collect::<Vec<_>>()),
            false => Ok(self.inputs[k].clone()),
        };
        let inputs = (0..self.inputs.len()).map(aligned).collect::<Result<Vec<_>>>()?;
        Items::run(operation, arguments, &inputs)
    }

    fn axes(&self, operation: &Operation, arguments: &[Slot]) -> Result<Option<Tensor>> {
        let Some(arguments) = from_the_end(operation, arguments, self.rank(0)) else {
            return Ok(None);
        };
        // `select_scatter` and `diagonal_scatter` take values of a lower rank. The arguments of the
        // others have one rank.
        let along = matches!(operation.name, "take_along_axis" | "put_along_axis");
        if along && (1..self.inputs.len()).any(|k| self.rank(k) != self.rank(0)) {
            return Ok(None);
        }
        let inputs = (0..self.inputs.len()).map(|k| self.stretched(k));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        Items::run(operation, &arguments, &inputs).map(Some)
    }

    fn rows(&self, operation: &Operation, arguments: &[Slot]) -> Result<Option<Tensor>> {
        let rank = self.rank(0);
        let Some(rewritten) = from_the_end(operation, arguments, rank) else { return Ok(None) };
        // A single value, as `index_fill` takes it, has no batch axis.
        let single = self.inputs.len() > 2 && self.rank(2) == 0 && rank > 0;
        if self.batched[1] {
            return match single || self.rank(1) != 1 {
                true => Ok(None),
                false => self.along(operation, &rewritten),
            };
        }
        if single && self.batched[2] && operation.name == "index_fill" {
            return Ok(None);
        }
        let mut inputs = vec![self.stretched(0)?, self.inputs[1].clone()];
        if self.inputs.len() > 2 {
            let fills = operation.name == "index_fill";
            inputs.push(if fills { self.inputs[2].clone() } else { self.stretched(2)? });
        }
        Items::run(operation, &rewritten, &inputs).map(Some)
    }

    /// Each item has an index of its own: the operation that works element by element along an axis
    /// gives the same result.
    fn along(&self, operation: &Operation, arguments: &[Slot]) -> Result<Option<Tensor>> {
        let value = |name: &str| {
            let at = operation.arguments.iter().position(|argument| argument.name == name)?;
            match &arguments[at] {
                Slot::Value(value) if !matches!(value, Value::Absent) => Some(value.clone()),
                _ => preset(&operation.arguments[at]),
            }
        };
        let flag = |name| matches!(value(name), Some(Value::Flag(true)));
        let Some(Value::Int(axis)) = value("axis") else { return Ok(None) };
        let x = self.stretched(0)?;
        let at = (x.rank() as i64 + axis) as usize;
        // The index [b, n] as [b, 1, .., n, .., 1].
        let index = &self.inputs[1];
        let others: Vec<usize> = (1..x.rank()).filter(|other| *other != at).collect();
        let index = if others.is_empty() { index.clone() } else { index.unsqueeze(others)? };
        if operation.name == "index_select" {
            return x.take_along_axis(&index, axis, true).map(Some);
        }
        let how = match (operation.name, value("reduce")) {
            ("scatter", Some(Value::Reduce(Some(reduce)))) if !flag("overwrite") => {
                PutAlongAxis::reduce(axis, reduce).include_self(flag("include_self"))
            }
            ("index_add", _) => PutAlongAxis::reduce(axis, Reduce::Sum).include_self(true),
            ("scatter" | "index_copy", _) => PutAlongAxis::assign(axis),
            _ => return Ok(None),
        };
        // Updates may have more rows than the index, which only this form takes. It does not
        // broadcast, so the index is stretched.
        let mut shape = x.dims();
        shape[at] = index.dims()[at];
        let (index, updates) = (index.stretched_to(&shape)?, self.stretched(2)?);
        x.put_along_axis(&index, &updates, how.broadcast(false)).map(Some)
    }

    /// `reshape`, `broadcast_to` and `transpose`: the batch axis comes first.
    fn shape(&self, operation: &Operation, arguments: &[Slot]) -> Result<Option<Tensor>> {
        let Slot::Value(second) = &arguments[1] else { return Ok(None) };
        let ints: Vec<i64> = match (operation.name, second) {
            ("transpose", Value::Absent) => {
                std::iter::once(0).chain((1..=self.rank(0) as i64).rev()).collect()
            }
            ("transpose", Value::Ints(order)) => {
                let rank = self.rank(0) as i64;
                if order.iter().any(|axis| !(-rank..rank).contains(axis)) {
                    return Ok(None);
                }
                let later = |axis: &i64| if *axis < 0 { *axis + rank + 1 } else { axis + 1 };
                std::iter::once(0).chain(order.iter().map(later)).collect()
            }
            // Without items, any size would do for -1.
            ("reshape", Value::Ints(sizes)) if sizes.contains(&-1) && self.known_size()? == 0 => {
                return Ok(None);
            }
            (_, Value::Ints(sizes)) => {
                std::iter::once(self.known_size()? as i64).chain(sizes.iter().copied()).collect()
            }
            _ => return Ok(None),
        };
        if operation.name == "broadcast_to" {
            let missing = (ints.len() - 1).checked_sub(self.rank(0));
            let Some(missing) = missing else { return Ok(None) };
            let shape: Vec<usize> = ints.iter().map(|&size| size.max(0) as usize).collect();
            let aligned = match missing {
                0 => self.inputs[0].clone(),
                _ => self.inputs[0].unsqueeze((1..=missing).collect::<Vec<_>>())?,
            };
            return aligned.broadcast_to(shape).map(Some);
        }
        let mut rewritten = arguments.to_vec();
        rewritten[1] = Slot::Value(Value::Ints(ints));
        Items::run(operation, &rewritten, &self.inputs).map(Some)
    }

    /// The number of items, which must be known when the function is traced.
    fn known_size(&self) -> Result<usize> {
        self.size().known().ok_or(Error::LateSize)
    }

    /// Calls the function for each item.
    fn each(&self, of: &Function, program: Option<&Program>) -> Result<Vec<Tensor>> {
        let count = self.known_size()?;
        // How many elements a mask selects is not known without items, but the result is like x.
        if count == 0 && of.operation().name == "index_put" {
            return Ok(vec![self.stretched(0)?]);
        }
        let mut results: Vec<Vec<Tensor>> = vec![Vec::with_capacity(count); of.outputs()];
        // Without items, a stretched one tells the shapes.
        for item in 0..count.max(1) {
            let take = |(input, batched): (&Tensor, &bool)| match (*batched, count) {
                (false, _) => Ok(input.clone()),
                (true, 0) => {
                    let shape = &input.dims()[1..];
                    input.sum(0, false)?.cast(input.dtype())?.stretched_to(shape)
                }
                (true, _) => input.i(item),
            };
            let inputs = self.inputs.iter().zip(&self.batched).map(take);
            let inputs = inputs.collect::<Result<Vec<_>>>()?;
            let item = of.evaluate(&inputs, program)?;
            results.iter_mut().zip(item).for_each(|(all, one)| all.push(one));
        }
        let join = |all: Vec<Tensor>| match count {
            0 => Tensor::stack(&all, 0)?.i(0..0),
            _ => Tensor::stack(&all, 0),
        };
        results.into_iter().map(join).collect()
    }
}

/// The value that an argument has if it is left out.
fn preset(argument: &Argument) -> Option<Value<'static>> {
    match argument.default? {
        Preset::Int(value) => Some(Value::Int(value)),
        Preset::Flag(value) => Some(Value::Flag(value)),
        Preset::Reduce(reduce) => Some(Value::Reduce(Some(reduce))),
        _ => None,
    }
}

/// Returns the arguments with axes that count from the end of a tensor of this rank, so that they
/// mean the same if the tensor has one more axis in front. Returns `None` if an axis is out of range
/// or depends on sizes.
fn from_the_end(operation: &Operation, arguments: &[Slot], rank: usize) -> Option<Vec<Slot>> {
    // These two count axes of their result.
    let new = match (operation.name, arguments) {
        ("stack", _) => 1,
        ("unsqueeze", [_, Slot::Value(Value::Ints(axes)), ..]) => axes.len(),
        _ => 0,
    };
    let rank = (rank + new) as i64;
    let back = |axis: i64| {
        (-rank..rank).contains(&axis).then_some(if axis < 0 { axis } else { axis - rank })
    };
    let triangular = matches!(operation.name, "tril" | "triu") && rank < 2;
    if triangular {
        return None;
    }
    let mut rewritten = arguments.to_vec();
    for (argument, slot) in operation.arguments.iter().zip(&mut rewritten) {
        let Slot::Value(value) = slot else { continue };
        let is_axis = argument.name.contains("axis");
        if !is_axis {
            continue;
        }
        *value = match (argument.kind, &*value) {
            (ArgumentKind::Int, Value::Int(axis)) => Value::Int(back(*axis)?),
            (ArgumentKind::Int, _) => match argument.default? {
                Preset::Int(axis) => Value::Int(back(axis)?),
                _ => return None,
            },
            (ArgumentKind::Axes | ArgumentKind::Ints, Value::Ints(axes)) => {
                Value::Ints(axes.iter().map(|axis| back(*axis)).collect::<Option<_>>()?)
            }
            // All axes of an item. `squeeze` would need their sizes.
            (ArgumentKind::Axes, Value::Absent) if operation.name != "squeeze" && rank > 0 => {
                Value::Ints((-rank..0).collect())
            }
            (ArgumentKind::AxisList, Value::Bounds(Bounds::One(axis))) => {
                Value::Bounds(Bounds::One(back(*axis)?))
            }
            (ArgumentKind::AxisList, Value::Bounds(Bounds::List(axes))) => {
                let each = |axis: &Option<i64>| Some(Some(back((*axis)?)?));
                Value::Bounds(Bounds::List(axes.iter().map(each).collect::<Option<_>>()?))
            }
            // The first axis.
            (ArgumentKind::AxisList, Value::Absent) => Value::Bounds(Bounds::One(back(0)?)),
            _ => return None,
        };
    }
    Some(rewritten)
}
