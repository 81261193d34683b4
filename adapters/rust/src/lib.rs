//! The native half of `chunkwright_rust`.
//!
//! What Python sees is declared in `python/chunkwright_rust/_native.pyi`; the stub is checked against
//! this module. No backend is registered yet: the crate proves that the workspace builds.

use pyo3::prelude::*;

/// The version of this crate, equal to that of every distribution of the repository.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The extension module `chunkwright_rust._native`.
#[pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    /// Return the version of the native code.
    #[pyfunction]
    fn version() -> &'static str {
        super::VERSION
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
