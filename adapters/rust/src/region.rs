//! A selection of an array, cut along a regular grid of chunks.
//!
//! The same as `chunkwright.grid.split` for one selection, which is the reference. Each axis is cut by itself into
//! segments, one for each chunk that has an element; the segments of all axes are then multiplied out. Lists have to
//! ascend, so that what each chunk has of them lies together in the caller's array.

use std::ops::Range;

use crate::selections::{Item, Rows};

/// What a selection has of the chunks at one place along an axis.
struct Segment {
    cell: i64,
    /// Start, count and step in the chunk; not of lists.
    inside: [i64; 3],
    /// Positions in the selection.
    positions: Range<i64>,
}

/// A selection that was cut.
pub struct Region {
    /// What is taken of each chunk; their chunks are numbered.
    pub rows: Rows,
    /// Where each chunk is in the grid, axis by axis.
    pub cells: Vec<i64>,
    /// Shape of what is selected.
    pub shape: Vec<usize>,
}

/// Cut a selection along chunks of a shape; None when there are no axes, or more chunks than so many, when lists do not
/// ascend, or when something is negative.
#[must_use]
pub fn cut(selection: &[Item], shape: &[usize], most: usize) -> Option<Region> {
    let length = |size: &usize| i64::try_from(*size).ok().filter(|size| *size > 0);
    let sizes: Vec<i64> = shape.iter().map(length).collect::<Option<_>>()?;
    let along = |(item, size): (&Item, &i64)| segments(item, *size, most);
    let axes: Vec<Vec<Segment>> = selection.iter().zip(&sizes).map(along).collect::<Option<_>>()?;
    let chunks = axes.iter().try_fold(1_usize, |product, axis| product.checked_mul(axis.len()))?;
    if chunks > most || shape.is_empty() || selection.len() != shape.len() {
        return None;
    }
    let mut landing = 0..;
    let lands = |item: &Item| if matches!(item, Item::Index(_)) { None } else { landing.next() };
    let length = |(item, axis): (&Item, &Vec<Segment>)| {
        let end = axis.last().map_or(0, |segment| segment.positions.end);
        (!matches!(item, Item::Index(_))).then(|| usize::try_from(end).unwrap_or(usize::MAX))
    };
    let mut region = Region {
        rows: Rows::new(shape.len()),
        cells: Vec::with_capacity(chunks * shape.len()),
        shape: selection.iter().zip(&axes).filter_map(length).collect(),
    };
    region.rows.axes = Some(selection.iter().map(lands).collect());
    let mut picks = vec![0; axes.len()];
    for chunk in 0..chunks {
        region.rows.chunks.push(i64::try_from(chunk).ok()?);
        for (axis, pick) in picks.iter().enumerate() {
            region.add(axis, &axes[axis][*pick], &selection[axis], sizes[axis]);
        }
        next(&mut picks, &axes);
    }
    Some(region)
}

/// Go to the next combination of segments; the last axis is the fastest.
fn next(picks: &mut [usize], axes: &[Vec<Segment>]) {
    for (pick, axis) in picks.iter_mut().zip(axes).rev() {
        *pick += 1;
        if *pick < axis.len() {
            return;
        }
        *pick = 0;
    }
}

impl Region {
    /// Add what is taken along an axis of one chunk more.
    fn add(&mut self, axis: usize, segment: &Segment, item: &Item, size: i64) {
        let positions = segment.positions.clone();
        let inside = if let Item::List(list) = item {
            let within = |position: usize| list.as_slice()[position] - segment.cell * size;
            let ends = [positions.start, positions.end].map(|end| usize::try_from(end).unwrap_or(0));
            let values: Vec<i64> = (ends[0]..ends[1]).map(within).collect();
            self.rows.add_list(axis, &values)
        } else {
            segment.inside
        };
        self.rows.inside.push(inside);
        self.cells.push(segment.cell);
        if !matches!(item, Item::Index(_)) {
            self.rows.outside.push([positions.start, positions.end - positions.start]);
        }
    }
}

/// Cut what is selected along one axis.
fn segments(item: &Item, size: i64, most: usize) -> Option<Vec<Segment>> {
    let found = match item {
        Item::Index(index) => vec![Segment { cell: index / size, inside: [index % size, 1, 1], positions: 0..1 }],
        Item::Slice([start, stop, by]) => along_slice(*start, *stop, *by, size, most),
        Item::List(list) if list.shape().len() == 1 => along_list(list.as_slice(), size)?,
        Item::List(_) => return None,
    };
    (found.len() <= most).then_some(found)
}

fn along_slice(start: i64, stop: i64, by: i64, size: i64, most: usize) -> Vec<Segment> {
    let count = if stop > start { (stop - start - 1) / by + 1 } else { 0 };
    let (mut found, mut first) = (Vec::new(), 0);
    // One more than there may be is enough to see that there are too many.
    while first < count && found.len() <= most {
        let at = start + first * by;
        let within = at % size;
        let here = ((size - 1 - within) / by + 1).min(count - first);
        found.push(Segment { cell: at / size, inside: [within, here, by], positions: first..first + here });
        first += here;
    }
    found
}

fn along_list(list: &[i64], size: i64) -> Option<Vec<Segment>> {
    if !list.is_sorted() || list.first().is_some_and(|first| *first < 0) {
        return None;
    }
    let mut first = 0;
    let runs = list.chunk_by(|one, other| one / size == other / size).map(|run| {
        let positions = first..first + i64::try_from(run.len()).unwrap_or(0);
        first = positions.end;
        Segment { cell: run[0] / size, inside: [0; 3], positions }
    });
    Some(runs.collect())
}
