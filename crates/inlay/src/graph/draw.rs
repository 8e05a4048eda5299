//! A program as an SVG picture: a box for each node, in rows from the inputs to the results.

use std::fmt::Write;

use super::bind::text;
use super::program::{Graph, Program, What};
use super::text::name;
use crate::symbolic::Id;

const WIDTH: usize = 190;
const HEIGHT: usize = 44;
const GAP: usize = 26;

/// The row of each node: one below the lowest of its inputs.
fn rows(graph: &Graph) -> Vec<usize> {
    let mut rows: Vec<usize> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let above = node.inputs.iter().map(|input| rows[*input as usize] + 1);
        rows.push(above.max().unwrap_or(0));
    }
    rows
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn clipped(text: &str) -> String {
    const MOST: usize = 28;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

impl Program {
    /// The program as an SVG picture.
    ///
    /// ```
    /// # use inlay::{DType, Program};
    /// let program = Program::new();
    /// program.data("x", &[None], DType::F32)?.multiply(2)?;
    /// assert!(program.to_svg().starts_with("<svg"));
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn to_svg(&self) -> String {
        let graph = self.graph();
        let rows = rows(&graph);
        let mut columns = vec![0; rows.iter().max().map_or(0, |row| row + 1)];
        let mut corners = Vec::with_capacity(rows.len());
        for row in &rows {
            let column = columns[*row];
            columns[*row] += 1;
            corners.push((GAP + column * (WIDTH + GAP), GAP + row * (HEIGHT + GAP)));
        }
        let width = GAP + columns.iter().max().unwrap_or(&0) * (WIDTH + GAP);
        let height = GAP + columns.len() * (HEIGHT + GAP);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             font-family=\"monospace\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" \
             fill=\"white\"/>\n"
        );
        for (id, node) in graph.nodes.iter().enumerate() {
            let (x, y) = corners[id];
            for input in &node.inputs {
                let (from_x, from_y) = corners[*input as usize];
                let (from_x, to_x) = (from_x + WIDTH / 2, x + WIDTH / 2);
                let from_y = from_y + HEIGHT;
                // Writing to a string can't fail.
                let _ = writeln!(
                    svg,
                    "<path d=\"M{from_x} {from_y} C{from_x} {} {to_x} {} {to_x} {y}\" \
                     fill=\"none\" stroke=\"#9ab\"/>",
                    from_y + GAP / 2,
                    y.saturating_sub(GAP / 2)
                );
            }
        }
        for (id, node) in graph.nodes.iter().enumerate() {
            let (x, y) = corners[id];
            let (fill, what) = match &node.what {
                What::Data(_) => ("#dcebff", "data"),
                What::Constant(_) => ("#eee", "constant"),
                What::Op(op) if op.writes() => ("#ffe9c7", op.name()),
                What::Op(op) => ("#e5f6e5", op.name()),
            };
            let title = format!("{} {what}", name(&graph, id as Id));
            let site = node.site.text().unwrap_or_default();
            let _ = writeln!(
                svg,
                "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" \
                 height=\"{HEIGHT}\" rx=\"6\" fill=\"{fill}\" stroke=\"#567\"/>\
                 <text x=\"{}\" y=\"{}\">{}</text><text x=\"{}\" y=\"{}\" fill=\"#567\">{}</text></g>",
                escaped(&site),
                x + 8,
                y + 18,
                escaped(&clipped(&title)),
                x + 8,
                y + 34,
                escaped(&clipped(&text(&node.meta))),
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}
