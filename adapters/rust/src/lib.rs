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
        let numbers = VERSION.split('.').map(str::parse::<u32>);
        assert_eq!(numbers.filter(Result::is_ok).count(), 3);
    }
}
