//! The native half of `chunkwright_rust`: whole batches of chunks, decoded and encoded without the GIL.
//!
//! From the outside in: [`program`] is the Python class that a run of codecs is compiled to; [`batch`] shares the
//! chunks of one call among threads of [`pool`]; [`entries`] and [`place`] turn a selection into axes, along which
//! [`copy`] moves elements; [`kernels`] has one module per codec. [`files`] are read and decoded by the same threads. [`buffers`] is the only module that takes memory from Python
//! and [`errors`] the only one that makes Python exceptions.
//!
//! `unsafe` is denied except in modules that say so at their top. Every chunk runs under `catch_unwind`, and no
//! allocation follows a size that was read from encoded bytes.
//!
//! What Python sees is declared in `python/chunkwright_rust/_native.pyi`; the stub is checked against this module.

pub mod ahead;
pub mod batch;
pub mod blocks;
pub mod boxes;
pub mod buffers;
pub mod chain;
pub mod copy;
pub mod cpu;
pub mod cut;
pub mod entries;
pub mod errors;
#[cfg(unix)]
pub mod file;
#[cfg(unix)]
pub mod files;
#[cfg(unix)]
pub mod files_update;
#[cfg(unix)]
pub mod files_write;
pub mod fill;
pub mod index_cache;
pub mod kernels;
pub mod leave;
pub mod load;
pub mod pace;
pub mod place;
pub mod pool;
pub mod program;
pub mod read;
pub mod read_part;
pub mod read_stored;
mod region;
pub mod rewrite_part;
pub mod selections;
pub mod shard;
pub mod shard_read;
pub mod shard_write;
pub mod shards;
pub mod text;
pub mod worker;
pub mod write;

use pyo3::prelude::*;

/// The version of this crate, equal to that of every distribution of the repository.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The extension module `chunkwright_rust._native`.
#[pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::boxes::{BoxReader, Boxes};
    #[pymodule_export]
    use super::buffers::Encoded;
    #[pymodule_export]
    use super::program::Program;
    #[pymodule_export]
    use super::shards::Shards;

    #[cfg(unix)]
    #[pymodule_export]
    use super::files::Files;
    #[cfg(unix)]
    #[pymodule_export]
    use super::files_update::{encode_files, encode_shard_files};

    /// Return the version of the native code.
    #[pyfunction]
    fn version() -> &'static str {
        super::VERSION
    }

    /// Return how many files this process may have open at a time.
    #[cfg(unix)]
    #[pyfunction]
    fn descriptors() -> usize {
        super::leave::most()
    }

    /// Return how often the index of a shard was found among those that are kept, and how many bytes these take.
    #[pyfunction]
    fn index_cache() -> (u64, usize) {
        super::index_cache::state()
    }

    /// Say how many seconds times of files may be apart and look the same, and return what held before; for tests.
    #[pyfunction]
    fn set_coarse_times(seconds: i64) -> i64 {
        super::index_cache::set_coarse(seconds)
    }

    /// Return how many threads a batch is shared among when nothing limits it.
    #[pyfunction]
    fn threads() -> usize {
        super::pool::size()
    }
}

#[cfg(test)]
mod tests {
    use super::VERSION;

    #[test]
    fn the_version_has_three_numbers() {
        let numbers: Result<Vec<u32>, _> = VERSION.split('.').map(str::parse).collect();
        assert_eq!(numbers.map(|numbers| numbers.len()), Ok(3));
    }
}
