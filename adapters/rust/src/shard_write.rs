//! Encode shards: inner chunks by all threads, each shard put together by the thread that made its last one.

use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::batch::{Inputs, Results, each};
use crate::cut::Cut;
use crate::errors::Outcome;
use crate::load::Load;
use crate::shard::{Form, Index};
use crate::worker::Worker;
use crate::write::{Base, Writing};

/// Shards, and the places in one array where elements of their inner chunks come from.
pub struct ShardWriting<'a> {
    /// What the shards have in common.
    pub form: &'a Form,
    /// The touched inner chunks.
    pub cut: &'a Cut<'a>,
    /// How they are encoded.
    pub writing: &'a Writing<'a>,
    /// What the shards were before.
    pub existing: &'a Inputs<'a>,
}

/// A shard as it was before.
struct Old<'a> {
    data: &'a [u8],
    places: Vec<Option<Range<usize>>>,
}

/// Touched inner chunks of one shard, as far as they are made.
struct Pending {
    made: Vec<Option<Vec<u8>>>,
    left: usize,
}

impl<'a> ShardWriting<'a> {
    /// Do it all; shards that are not to be stored are None.
    ///
    /// # Errors
    /// The fault of the first shard that has one.
    pub fn run(&self, max_workers: Option<usize>) -> Outcome<Vec<Option<Vec<u8>>>> {
        let shards = self.existing.len();
        let touched = self.cut.by_shard(shards);
        let old = self.old(max_workers)?;
        let pending: Vec<Mutex<Pending>> = touched
            .iter()
            .map(|items| Mutex::new(Pending { made: vec![None; items.len()], left: items.len() }))
            .collect();
        let results = Results::new(shards);
        let finish = |shard: usize, made: &[Option<Vec<u8>>], worker: &mut Worker| {
            let whole = self.assemble(touched[shard].clone(), made, old[shard].get(), worker);
            if let Some(whole) = whole.map_err(|fault| fault.at(shard))? {
                results.set(shard, whole);
            }
            Ok(())
        };
        let inner = &self.form.inner;
        each(self.cut.count(), Load::like(inner.nbytes, &inner.encoding), max_workers, |item, worker| {
            let (shard, cell) = self.cut.inner_chunk(item);
            let before = old[shard].get().and_then(|old| Some(&old.data[old.places[cell].clone()?]));
            let base = before.map_or(Base::Fill, Base::Encoded);
            let made = self.writing.one(self.cut.pieces(item), base, worker).map_err(|fault| fault.at(shard))?;
            let mut state = pending[shard].lock().unwrap_or_else(PoisonError::into_inner);
            state.made[item - touched[shard].start] = made;
            state.left -= 1;
            if state.left > 0 {
                return Ok(());
            }
            let made = std::mem::take(&mut state.made);
            drop(state);
            finish(shard, &made, worker)
        })?;
        for (shard, items) in touched.iter().enumerate() {
            if items.is_empty() {
                Worker::lend(|worker| finish(shard, &[], worker))?;
            }
        }
        Ok(results.into_inner())
    }

    /// The shards that were there before, with every entry of their indexes checked.
    fn old(&self, max_workers: Option<usize>) -> Outcome<Vec<OnceLock<Old<'a>>>> {
        let old: Vec<OnceLock<Old<'a>>> = (0..self.existing.len()).map(|_| OnceLock::new()).collect();
        each(old.len(), self.form.index.nbytes, max_workers, |shard, worker| {
            let Some(data) = self.existing.row(shard)? else {
                return Ok(());
            };
            let index = self.form.decode(&data[self.form.index_span(data.len())?], worker)?;
            let places = self.places(&index, data.len())?;
            old[shard].get_or_init(|| Old { data, places });
            Ok(())
        })?;
        Ok(old)
    }

    fn places(&self, index: &Index, size: usize) -> Outcome<Vec<Option<Range<usize>>>> {
        (0..self.form.cells()).map(|cell| self.form.find(index, cell, size)).collect()
    }

    /// Put a shard together from what was made and what is kept.
    fn assemble(
        &self,
        items: Range<usize>,
        made: &[Option<Vec<u8>>],
        old: Option<&Old<'a>>,
        worker: &mut Worker,
    ) -> Outcome<Option<Vec<u8>>> {
        let mut parts: Vec<&[u8]> = vec![&[]; self.form.cells()];
        if let Some(old) = old {
            for (part, place) in parts.iter_mut().zip(&old.places) {
                *part = place.clone().map_or(&[], |place| &old.data[place]);
            }
        }
        for (item, made) in items.zip(made) {
            parts[self.cut.inner_chunk(item).1] = made.as_deref().unwrap_or_default();
        }
        self.form.assemble(&parts, worker)
    }
}
