//! Decode inner chunks of shards that are in memory or in storage.
//!
//! Indexes first, all threads together, with every entry checked that is going to be used; then the touched inner
//! chunks of all shards. Of shards in storage as many at a time as may be held open.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::batch::{Inputs, each, each_stored};
use crate::cut::Cut;
use crate::entries::{Entries, Layout};
use crate::errors::{Fault, Kind, Outcome};
use crate::index_cache::{self, Wanted};
use crate::leave::Leave;
use crate::load::Load;
use crate::pace::Pace;
use crate::read::{Reading, groups};
use crate::read_stored::{Item, Rows};
use crate::shard::{Form, Index};
use crate::worker::{Memory, Worker};

/// Shards, and the places in one array where elements of their inner chunks go.
pub struct ShardReading<'a> {
    /// What the shards have in common.
    pub form: &'a Form,
    /// Selections of shards, ordered by shard.
    pub entries: &'a Entries<'a>,
    /// The touched inner chunks.
    pub cut: &'a Cut<'a>,
    /// How they are decoded.
    pub reading: &'a Reading<'a>,
}

/// A shard in storage: its index, and where it is.
struct Held {
    index: Arc<Index>,
    source: usize,
    offset: usize,
    size: usize,
}

impl ShardReading<'_> {
    /// Do it all, with shards that are in memory.
    ///
    /// # Errors
    /// The fault of the first shard that has one.
    pub fn run(&self, inputs: &Inputs<'_>, max_workers: Option<usize>) -> Outcome<()> {
        inputs.check()?;
        self.entries.check(inputs.len())?;
        let indexes: Vec<OnceLock<Index>> = (0..inputs.len()).map(|_| OnceLock::new()).collect();
        let touched = self.settle_missing(0..usize::MAX, |shard| inputs.offset[shard] < 0)?;
        let items = self.cut.by_shard(inputs.len());
        each(touched.len(), self.form.index.nbytes, max_workers, |number, worker| {
            let shard = touched[number];
            let index = inputs.row(shard).and_then(|data| {
                let data = data.unwrap_or_default();
                let index = self.form.decode(&data[self.form.index_span(data.len())?], worker)?;
                for item in items[shard].clone() {
                    self.form.find(&index, self.cut.inner_chunk(item).1, data.len())?;
                }
                Ok(index)
            });
            indexes[shard].set(index.map_err(|fault| fault.at(shard))?).map_err(|_| twice())
        })?;
        let inner = &self.form.inner;
        each(self.cut.count(), Load::like(inner.nbytes, &inner.decoding), max_workers, |item, worker| {
            let (shard, cell) = self.cut.inner_chunk(item);
            let Some(index) = indexes[shard].get() else {
                return Ok(());
            };
            let mut one = || {
                let data = inputs.row(shard)?.unwrap_or_default();
                let place = self.form.find(index, cell, data.len())?;
                self.reading.one(place.map(|place| &data[place]), self.cut.pieces(item), worker)
            };
            one().map_err(|fault| fault.at(shard))
        })
    }

    /// Do it all, with shards that are in storage.
    ///
    /// # Errors
    /// The fault of the first shard that has one.
    pub fn run_stored(&self, rows: &Rows<'_>, max_workers: Option<usize>) -> Outcome<()> {
        rows.check()?;
        self.entries.check(rows.offset.len())?;
        index_cache::shrink(rows.storage.index_cache());
        let touched = self.settle_missing(0..usize::MAX, |shard| rows.offset[shard] < 0)?;
        let (mut begin, mut item) = (0, 0);
        while begin < touched.len() {
            // Shards are held from the look at their indexes to the last byte.
            let leave = Leave::take(touched.len() - begin);
            let window = &touched[begin..begin + leave.count()];
            begin += window.len();
            item = self.read_window(rows, window, item, max_workers)?;
            for shard in window {
                if let Some((source, _, None)) = rows.row(*shard)? {
                    rows.storage.release(source);
                }
            }
        }
        Ok(())
    }

    /// Read some shards; the first inner chunk of theirs is the one of that number. Returns that of the next shards.
    fn read_window(
        &self,
        rows: &Rows<'_>,
        window: &[usize],
        mut item: usize,
        max_workers: Option<usize>,
    ) -> Outcome<usize> {
        let held: Vec<OnceLock<Held>> = window.iter().map(|_| OnceLock::new()).collect();
        each_stored(window.len(), self.form.index.nbytes, max_workers, |number, worker, pace| {
            let shard = window[number];
            let mut memory = std::mem::take(&mut worker.input);
            let found = self.hold(rows, shard, &mut memory, worker, pace);
            worker.input = memory;
            let found = found.map_err(|fault| fault.at(shard))?;
            found.map_or(Ok(()), |found| held[number].set(found).map_err(|_| twice()))
        })?;
        let find = |shard: usize| window.binary_search(&shard).ok().and_then(|number| held[number].get());
        let (first, last) = (window[0], window[window.len() - 1]);
        self.settle_missing(first..last + 1, |shard| window.binary_search(&shard).is_ok() && find(shard).is_none())?;
        let mut items = Vec::new();
        while item < self.cut.count() {
            let (chunk, cell) = self.cut.inner_chunk(item);
            if chunk > last {
                break;
            }
            let selections = self.cut.pieces(item);
            item += 1;
            let Some(found) = find(chunk) else {
                continue;
            };
            match self.form.find(&found.index, cell, found.size).map_err(|fault| fault.at(chunk))? {
                Some(place) => {
                    let (offset, length) = (found.offset + place.start, Some(place.len()));
                    items.push(Item { chunk, rows: selections, source: found.source, offset, length });
                }
                None => Worker::lend(|worker| self.reading.one(None, selections, worker))?,
            }
        }
        drop(held);
        self.reading.read_items(items, rows.storage, max_workers)?;
        Ok(item)
    }

    /// Find a shard in storage and read its index; None when it is missing after all.
    fn hold(
        &self,
        rows: &Rows<'_>,
        shard: usize,
        memory: &mut Memory,
        worker: &mut Worker,
        pace: &Pace,
    ) -> Outcome<Option<Held>> {
        let Some((source, offset, length)) = rows.row(shard)? else {
            return Ok(None);
        };
        let (size, version) = match length {
            Some(length) => (length, None),
            None => match pace.request(|| (0, rows.storage.hold(source)))? {
                Some(found) => (found.size.saturating_sub(offset), Some(found.version)),
                None => return Ok(None),
            },
        };
        let span = self.form.index_span(size)?;
        let limit = rows.storage.index_cache();
        let wanted = version.filter(|_| limit > 0).map(|version| {
            let span = offset + span.start..offset + span.end;
            Wanted { version, span, form: &self.form.index }
        });
        if let Some(index) = wanted.as_ref().and_then(|wanted| index_cache::find(wanted, limit)) {
            return Ok(Some(Held { index, source, offset, size }));
        }
        let wanted = wanted.filter(|wanted| wanted.version.is_settled());
        let read = pace.request(|| {
            let read = rows.storage.read(source, offset + span.start, Some(span.len()), memory);
            (span.len(), read)
        });
        let Some(read) = read? else {
            return Ok(None);
        };
        let _permit = pace.permit();
        let index = Arc::new(self.form.decode(memory.filled(read), worker)?);
        if let Some(wanted) = wanted {
            index_cache::keep(&wanted, &index, limit);
        }
        Ok(Some(Held { index, source, offset, size }))
    }

    /// Fill what is selected of missing shards among some, and name those that are there.
    fn settle_missing(&self, among: Range<usize>, is_missing: impl Fn(usize) -> bool) -> Outcome<Vec<usize>> {
        let layout = Layout::of_one_element(&self.form.shape());
        let groups = groups(self.entries.chunk).into_iter().filter(|(shard, _)| among.contains(shard));
        let (missing, there): (Vec<_>, Vec<_>) = groups.partition(|(shard, _)| is_missing(*shard));
        Worker::lend(|worker| {
            let place = &mut worker.place;
            missing.into_iter().try_for_each(|(_, rows)| self.reading.fill(self.entries, rows, &layout, place))
        })?;
        Ok(there.into_iter().map(|(shard, _)| shard).collect())
    }
}

#[allow(clippy::unnecessary_box_returns, reason = "faults are handed on in boxes")]
fn twice() -> Box<Fault> {
    Fault::new(Kind::Plan, "an index was read twice")
}
