//! Programs in files: a header with the version of the schema, then the nodes, then a checksum.
//!
//! Reading a file makes each call again, so nothing in it is trusted: the shape of every node is
//! inferred, and every symbol must be the size of an axis of an earlier node.

use std::path::Path;
use std::sync::Arc;

use inlay_core::{DType, Dim, Dims, Error, Meta, Result, Symbol};
use serde::{Deserialize, Serialize};

use super::plan::needed;
use super::program::{Graph, Program, What};
use crate::array::Array;
use crate::op::AnyOp;
use crate::site::Site;
use crate::symbolic::Id;
use crate::{Device, device, ops};

const MAGIC: &[u8; 8] = b"inlayprg";

/// The version of the schema below and of the operations in it.
const VERSION: u16 = 3;

#[derive(Serialize, Deserialize)]
struct File {
    nodes: Vec<FileNode>,
    outputs: Vec<(String, Id)>,
}

#[derive(Serialize, Deserialize)]
struct FileNode {
    what: FileWhat,
    inputs: Vec<Id>,
    name: Option<String>,
    line: Option<String>,
}

#[derive(Serialize, Deserialize)]
enum FileWhat {
    Data {
        name: String,
        dtype: DType,
        shape: Vec<Option<u64>>,
    },
    Constant {
        dtype: DType,
        shape: Vec<u64>,
        bytes: Vec<u8>,
    },
    /// A symbol among the sizes is numbered by the node and the axis that define it.
    Op {
        tag: String,
        bytes: Vec<u8>,
    },
}

/// The number of low bits of a symbol's number that hold its axis.
const AXIS_BITS: u32 = 16;

fn damaged(problem: impl Into<String>) -> Error {
    Error::File { op: "load", problem: problem.into() }
}

fn io_error(op: &'static str, path: &Path, error: std::io::Error) -> Error {
    Error::Io { op, path: path.into(), source: error.into() }
}

impl Program {
    /// Returns the program as bytes: its inputs, and the nodes that its outputs need. See
    /// [`Program::set_outputs`].
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// program.set_outputs(&[("y", &y)])?;
    /// let again = Program::from_bytes(&program.to_bytes()?)?;
    /// assert_eq!(again.outputs(), ["y"]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A program without outputs.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let graph = self.graph();
        if graph.outputs.is_empty() {
            let problem = "the program has no outputs: name them first".into();
            return Err(Error::File { op: "save", problem });
        }
        let fetch: Vec<Id> = graph.outputs.iter().map(|(_, id)| *id).collect();
        let mut live = needed(&graph, &fetch);
        // Unused inputs are kept, because callers may feed them.
        graph.data.values().for_each(|id| live[*id as usize] = true);
        bytes_of(&graph, &live)
    }

    /// Like [`Program::to_bytes`], with all nodes. The program may have no outputs.
    ///
    /// ```
    /// # use inlay::{DType, Program};
    /// let program = Program::new();
    /// program.data("x", &[None], DType::F32)?;
    /// let copy = Program::from_bytes(&program.to_whole_bytes()?)?;
    /// assert_eq!(copy.inputs(), ["x"]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A constant that can't be copied from its device.
    pub fn to_whole_bytes(&self) -> Result<Vec<u8>> {
        let graph = self.graph();
        bytes_of(&graph, &vec![true; graph.nodes.len()])
    }

    /// Reads a program from the bytes that [`Program::to_bytes`] made.
    ///
    /// ```
    /// # use inlay::Program;
    /// assert!(Program::from_bytes(b"no program").is_err());
    /// ```
    ///
    /// # Errors
    /// Bytes that are not a valid program of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Program> {
        let file = decode(bytes)?;
        let mut graph = Graph::default();
        for (at, node) in file.nodes.into_iter().enumerate() {
            read_node(&mut graph, node).map_err(|error| damaged(format!("node {at}: {error}")))?;
        }
        for (name, id) in file.outputs {
            if id as usize >= graph.nodes.len() {
                return Err(damaged(format!("output {name:?} is no node")));
            }
            graph.outputs.push((name, id));
        }
        Ok(Program::of_graph(graph))
    }

    /// Writes the program to a file.
    ///
    /// ```
    /// # use inlay::{DType, Program, Tensor};
    /// # let program = Program::new();
    /// # let x = program.data("x", &[None], DType::F32)?;
    /// # let y = (&x * 2)?;
    /// let path = std::env::temp_dir().join(format!("doubled_{}.inlay", std::process::id()));
    /// program.set_outputs(&[("y", &y)])?;
    /// program.save(&path)?;
    /// let loaded = Program::load(&path)?;
    /// let results = loaded.run(&[("x", &Tensor::from([1.0f32]))], &[&loaded.value("y")?])?;
    /// assert_eq!(results[0].to_vec::<f32>()?, [2.0]);
    /// # let _ = std::fs::remove_file(path);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Program::to_bytes`] and of the file system.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let (path, bytes) = (path.as_ref(), self.to_bytes()?);
        std::fs::write(path, bytes).map_err(|error| io_error("save", path, error))
    }

    /// Reads a program from a file.
    ///
    /// ```
    /// # use inlay::Program;
    /// assert!(Program::load("no/such/file").is_err());
    /// ```
    ///
    /// # Errors
    /// The errors of [`Program::from_bytes`] and of the file system.
    pub fn load(path: impl AsRef<Path>) -> Result<Program> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| io_error("load", path, error))?;
        Program::from_bytes(&bytes)
    }
}

/// Returns the bytes of the nodes that are `live`. The inputs of such a node are live, too.
fn bytes_of(graph: &Graph, live: &[bool]) -> Result<Vec<u8>> {
    let mut moved = vec![Id::MAX; graph.nodes.len()];
    let mut nodes = Vec::new();
    for (id, node) in graph.nodes.iter().enumerate().filter(|(id, _)| live[*id]) {
        moved[id] = nodes.len() as Id;
        let what = match &node.what {
            What::Data(name) => FileWhat::Data {
                name: name.clone(),
                dtype: node.meta.dtype,
                shape: node.meta.shape.iter().map(|dim| Some(dim.known()? as u64)).collect(),
            },
            What::Constant(array) => FileWhat::Constant {
                dtype: array.dtype,
                shape: array.shape().iter().map(|&size| size as u64).collect(),
                bytes: device::load_bytes(array)?,
            },
            What::Op(op) => {
                let (tag, bytes) = ops::save(&numbered(graph, op, &moved))?;
                FileWhat::Op { tag: tag.into(), bytes }
            }
        };
        nodes.push(FileNode {
            what,
            inputs: node.inputs.iter().map(|input| moved[*input as usize]).collect(),
            name: node.site.name.as_deref().map(str::to_owned),
            line: node.site.line.as_deref().map(str::to_owned),
        });
    }
    let outputs =
        graph.outputs.iter().map(|(name, id)| (name.clone(), moved[*id as usize])).collect();
    encode(&File { nodes, outputs })
}

/// Returns the operation with its symbols numbered as in a file.
fn numbered(graph: &Graph, operation: &AnyOp, moved: &[Id]) -> AnyOp {
    let dims = operation.sizes();
    let number = |symbol: &Symbol| {
        let (node, axis) = graph.sizes.get(symbol).copied().unwrap_or((0, 0));
        Symbol::numbered(u64::from(moved[node as usize]) << AXIS_BITS | axis as u64)
    };
    let dims: Dims = dims
        .iter()
        .map(|dim| match dim {
            Dim::Known(_) => *dim,
            Dim::Symbol(symbol) => Dim::Symbol(number(symbol)),
        })
        .collect();
    if dims.is_empty() {
        return operation.clone();
    }
    operation.with_sizes(&dims).unwrap_or_else(|| operation.clone())
}

fn encode(file: &File) -> Result<Vec<u8>> {
    let problem = |error: postcard::Error| Error::File { op: "save", problem: error.to_string() };
    let crc = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
    let body = postcard::to_allocvec_crc32(file, crc.digest()).map_err(problem)?;
    Ok([MAGIC.as_slice(), &VERSION.to_le_bytes(), &body].concat())
}

fn decode(bytes: &[u8]) -> Result<File> {
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| damaged("this is no program of Inlay"))?;
    let (version, body) =
        rest.split_first_chunk::<2>().ok_or_else(|| damaged("the file is cut short"))?;
    let version = u16::from_le_bytes(*version);
    if version != VERSION {
        return Err(damaged(format!(
            "the file has version {version}, this library reads {VERSION}"
        )));
    }
    let crc = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
    postcard::from_bytes_crc32(body, crc.digest())
        .map_err(|error| damaged(format!("the file is damaged: {error}")))
}

/// Checks a node of a file and appends it.
fn read_node(graph: &mut Graph, node: FileNode) -> Result<()> {
    let next = graph.nodes.len();
    if node.inputs.iter().any(|input| *input as usize >= next) {
        return Err(damaged("it reads a node that comes later"));
    }
    let site = Site { name: node.name.map(Arc::from), line: node.line.map(Arc::from) };
    let size = |size: u64| usize::try_from(size).map_err(|_| damaged("a size is too large"));
    let (what, meta) = match node.what {
        FileWhat::Data { name, dtype, shape } => {
            if name.is_empty() || graph.data.insert(name.clone(), next as Id).is_some() {
                return Err(damaged(format!("the name {name:?} can't be used")));
            }
            let dim =
                |dim: Option<u64>| dim.map_or(Ok(Dim::unknown()), |n| size(n).map(Dim::Known));
            let shape = shape.into_iter().map(dim).collect::<Result<Dims>>()?;
            (What::Data(name), Meta { dtype, shape })
        }
        FileWhat::Constant { dtype, shape, bytes } => {
            let shape = shape.into_iter().map(size).collect::<Result<Vec<usize>>>()?;
            let layout = inlay_core::Layout::contiguous("load", &shape, dtype.size())?;
            if layout.numel().checked_mul(dtype.size()) != Some(bytes.len()) {
                return Err(damaged("a constant has another size than its shape"));
            }
            if dtype == DType::Bool && bytes.iter().any(|byte| *byte > 1) {
                return Err(damaged("a bool is neither true nor false"));
            }
            let array = Array::on(Device::Cpu, "load", dtype, &shape)?;
            device::store_bytes(&array, &bytes)?;
            let meta = array.meta();
            (What::Constant(array), meta)
        }
        FileWhat::Op { tag, bytes } => {
            let operation = resolved(graph, ops::load(&tag, &bytes)?)?;
            if operation.arity().is_some_and(|arity| arity != node.inputs.len()) {
                return Err(damaged("it has another number of inputs than its operation takes"));
            }
            let inputs: Vec<Meta> =
                node.inputs.iter().map(|input| graph.node(*input).meta.clone()).collect();
            let meta = operation.check(&inputs)?.meta().clone();
            (What::Op(operation), meta)
        }
    };
    graph.push(what, &node.inputs, meta, site).map(drop)
}

/// Returns an operation of a file with its symbols replaced by those of the graph.
fn resolved(graph: &Graph, operation: AnyOp) -> Result<AnyOp> {
    let dims = operation.sizes();
    if dims.is_empty() {
        return Ok(operation);
    }
    let resolve = |dim: &Dim| {
        let Dim::Symbol(symbol) = dim else { return Ok(*dim) };
        let (node, axis) =
            (symbol.number() >> AXIS_BITS, symbol.number() as usize & ((1 << AXIS_BITS) - 1));
        let node = usize::try_from(node).ok().and_then(|node| graph.nodes.get(node));
        let found = node.and_then(|node| node.meta.shape.get(axis)).copied();
        found.ok_or_else(|| damaged("it names a size that is not there"))
    };
    let dims = dims.iter().map(resolve).collect::<Result<Dims>>()?;
    operation.with_sizes(&dims).ok_or_else(|| damaged("its sizes can't be filled in"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "what fails here fails the test")]
mod tests {
    use super::*;
    use crate::{GradOptions, Item, Reduce, Scatter, Slice, Tensor};

    fn dims(rank: usize) -> Vec<Option<usize>> {
        vec![None; rank]
    }

    /// A program of many operations, some of which have symbolic sizes, and values for its inputs.
    fn program() -> (Program, Vec<(&'static str, Tensor)>) {
        let program = Program::new();
        let x = program.data("x", &dims(2), DType::F64).unwrap().with_gradient().unwrap();
        let u = program.data("u", &dims(2), DType::F64).unwrap().with_gradient().unwrap();
        let index = program.data("index", &dims(1), DType::I64).unwrap();
        let mask = program.data("mask", &dims(2), DType::Bool).unwrap();
        let mut total = Tensor::zeros((), DType::F64).unwrap();
        for reduce in [Reduce::Sum, Reduce::Mul, Reduce::Mean, Reduce::Amax] {
            let y = x.scatter(&index, &u, Scatter::reduce(reduce).include_self(true)).unwrap();
            let y = y.masked_scatter(&mask, &u).unwrap();
            let last = y.index(&[Item::Slice(Slice::ALL), Item::At(-1)]).unwrap();
            total = total.add(&last.prod(None, false).unwrap()).unwrap();
            total = total.add(&y.masked_select(&mask).unwrap().sum(None, false).unwrap()).unwrap();
        }
        let options = GradOptions { create_graph: true, ..GradOptions::default() };
        let grads = Tensor::grad_of(&[&total], &[&x, &u], &[], options).unwrap();
        let [Some(dx), Some(du)] = grads.as_slice() else { panic!("both are used") };
        program.set_outputs(&[("total", &total), ("dx", dx), ("du", du)]).unwrap();
        let values: Vec<f64> = (0..12).map(|k| f64::from(k) * 0.25 + 0.5).collect();
        let feed = vec![
            ("x", Tensor::from_slice(&values, &[4, 3]).unwrap()),
            ("u", Tensor::from_slice(&values[..6], &[2, 3]).unwrap()),
            ("index", Tensor::from_slice(&[1i64, 1], &[2]).unwrap()),
            ("mask", Tensor::from_slice(&[true, false, false], &[1, 3]).unwrap()),
        ];
        (program, feed)
    }

    fn results(program: &Program, feed: &[(&str, Tensor)]) -> Result<Vec<Vec<f64>>> {
        let feed: Vec<(&str, &Tensor)> = feed.iter().map(|(name, value)| (*name, value)).collect();
        let outputs = program.outputs();
        let fetch = outputs.iter().map(|name| program.value(name)).collect::<Result<Vec<_>>>()?;
        let found = program.run(&feed, &fetch.iter().collect::<Vec<_>>())?;
        found.iter().map(Tensor::to_vec::<f64>).collect()
    }

    #[test]
    fn a_program_is_the_same_after_a_file() {
        let (program, feed) = program();
        let again = Program::from_bytes(&program.to_bytes().unwrap()).unwrap();
        assert_eq!(results(&again, &feed), results(&program, &feed));
        assert_eq!(again.inputs(), ["x", "u", "index", "mask"]);
        assert_eq!(again.to_bytes().unwrap(), program.to_bytes().unwrap());
    }

    #[test]
    fn a_copy_has_all_nodes_and_is_independent() {
        let (program, feed) = program();
        program.value("x").unwrap().add(&program.value("u").unwrap()).unwrap();
        let copy = Program::from_bytes(&program.to_whole_bytes().unwrap()).unwrap();
        assert_eq!(copy.to_string(), program.to_string());
        assert_eq!(results(&copy, &feed), results(&program, &feed));
        copy.data("new", &[None], DType::F32).unwrap();
        assert_eq!(copy.len(), program.len() + 1);
        let error = copy.run(&[], &[&program.value("x").unwrap()]).unwrap_err();
        assert!(matches!(error, Error::OtherProgram { .. }), "{error}");
    }

    #[test]
    fn files_that_were_made_to_harm_are_errors_or_programs() {
        let (program, feed) = program();
        let whole = program.to_bytes().unwrap();
        let head = MAGIC.len() + size_of_val(&VERSION);
        let body = &whole[head..whole.len() - 4];
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let (mut read, mut ran) = (0, 0);
        for _ in 0..4000 {
            let mut body = body.to_vec();
            for _ in 0..=random(3) {
                let at = random(body.len());
                match random(4) {
                    0 => body[at] = 0xff,
                    1 => drop(body.remove(at)),
                    2 => body.insert(at, random(256) as u8),
                    _ => body[at] ^= 1 << random(8),
                }
            }
            // The checksum is valid, so the damage reaches the decoder.
            let sum = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(&body).to_le_bytes();
            let bytes = [&whole[..head], &body, &sum].concat();
            if let Ok(program) = Program::from_bytes(&bytes) {
                read += 1;
                ran += usize::from(results(&program, &feed).is_ok());
            }
        }
        assert!(read > ran && ran > 0, "{read} were read, {ran} ran");
    }

    #[test]
    fn what_is_inferred_is_what_runs() {
        let (program, _) = program();
        let x = program.value("x").unwrap();
        // As an `i64` this size would be negative.
        assert!(x.numbers(Dim::Known(1 << 63)).is_err());
        let empty: &[Dim] = &[];
        assert!(x.stretched_to(empty).is_err());
    }

    #[test]
    fn other_versions_and_other_files_are_errors() {
        let (program, _) = program();
        let mut bytes = program.to_bytes().unwrap();
        bytes[MAGIC.len()] += 1;
        let text = Program::from_bytes(&bytes).unwrap_err().to_string();
        assert_eq!(
            text,
            format!("load: the file has version {}, this library reads {VERSION}", VERSION + 1)
        );
        let text = Program::from_bytes(b"PK\x03\x04").unwrap_err().to_string();
        assert_eq!(text, "load: this is no program of Inlay");
    }
}
