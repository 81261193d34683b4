"""The errors that the core raises, grouped by what a caller would do about them.

``CodecError`` is never raised itself. Each class also subclasses the built-in that callers already
catch, so code written against zarr-python or numcodecs keeps working::

    CodecError
    ├── ConfigurationError (ValueError)             metadata or a chain cannot be built
    │   ├── UnknownCodecError                       no codec of this name
    │   └── UnsupportedCodecError                   this backend cannot; the only error that leads to another backend
    ├── SelectionError (IndexError)                 the caller asked outside a chunk
    ├── CorruptChunkError (ValueError, RuntimeError)  stored bytes are wrong
    │   ├── ChecksumError
    │   ├── ChunkLengthError
    │   └── ShardIndexError
    ├── PlanError (RuntimeError)                    a driver fed a plan wrongly
    └── BackendUnavailableError (ImportError)       a backend was asked for by name and is not there

A missing chunk is a value (``None``), never an error. Any other exception out of the core, on any
input bytes, is a bug of ours. The core knows no chunk keys: whoever fetched the bytes adds the key
with :meth:`CodecError.with_key`.
"""

from __future__ import annotations

from typing import Any, Self

__all__ = (
    "BackendUnavailableError",
    "ChecksumError",
    "ChunkLengthError",
    "CodecError",
    "ConfigurationError",
    "CorruptChunkError",
    "PlanError",
    "Problem",
    "SelectionError",
    "ShardIndexError",
    "UnknownCodecError",
    "UnsupportedCodecError",
)


class CodecError(Exception):
    """Base of every error that chunkwright raises; never raised itself.

    Parameters
    ----------
    message
        What is wrong, in lower case, without the codec and the key.
    codec
        Name of the codec that found it, as in the metadata.
    key
        Key of the chunk in its store, when known.
    position
        Position of the chunk in the batch that was being worked on, when known.
    expected, found
        What the codec chain allows, and what was there.

    Examples
    --------
    >>> error = ChunkLengthError("wrong decoded size", codec="zstd", expected=8, found=3)
    >>> str(error.with_key("c/0/1"))
    "zstd: wrong decoded size: expected 8, found 3 (chunk 'c/0/1')"
    """

    def __init__(
        self,
        message: str = "",
        *,
        codec: str | None = None,
        key: str | None = None,
        position: int | None = None,
        expected: object = None,
        found: object = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.codec = codec
        self.key = key
        self.position = position
        self.expected = expected
        self.found = found

    def with_key(self, key: str) -> Self:
        """Name the chunk, unless it is named already.

        Parameters
        ----------
        key
            Key of the chunk in its store.

        Returns
        -------
        Self
            The same error.
        """
        if self.key is None:
            self.key = key
        return self

    def at(self, position: int) -> Self:
        """Set the position of the chunk in its batch.

        Parameters
        ----------
        position
            Row of the chunk in the batch that the caller handed in.

        Returns
        -------
        Self
            The same error.
        """
        self.position = position
        return self

    def __str__(self) -> str:
        text = self.message
        if self.codec is not None:
            text = f"{self.codec}: {text}"
        compared = (("expected", self.expected), ("found", self.found))
        if told := ", ".join(f"{name} {value}" for name, value in compared if value is not None):
            text = f"{text}: {told}"
        if self.key is not None:
            text = f"{text} (chunk {self.key!r})"
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,), self.__dict__


class Problem:
    """One thing that is wrong with a codec chain's metadata, with its place.

    Parameters
    ----------
    location
        Path into the metadata, for instance ``("codecs", 1, "configuration", "level")``.
    message
        What is wrong there.

    Examples
    --------
    >>> Problem(("codecs", 1, "configuration", "level"), "must be an integer")
    codecs[1].configuration.level: must be an integer
    """

    __slots__ = ("location", "message")

    def __init__(self, location: tuple[str | int, ...], message: str) -> None:
        self.location = location
        self.message = message

    def __repr__(self) -> str:
        path = ""
        for part in self.location:
            path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
        return f"{path}: {self.message}" if path else self.message

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class ConfigurationError(CodecError, ValueError):
    """Metadata or a chain cannot be built; the author of the metadata is at fault.

    Parameters
    ----------
    message
        Summary; when empty, the problems are listed.
    problems
        Every problem that was found, each with its location.
    **context
        See :class:`CodecError`.

    Examples
    --------
    >>> str(ConfigurationError("order is not a permutation", codec="transpose"))
    'transpose: order is not a permutation'
    """

    def __init__(self, message: str = "", *, problems: tuple[Problem, ...] = (), **context: Any) -> None:
        super().__init__(message or "; ".join(map(repr, problems)), **context)
        self.problems = tuple(problems)


class UnknownCodecError(ConfigurationError):
    """No codec of this name is known, and it must be understood."""


class UnsupportedCodecError(ConfigurationError):
    """A backend cannot run this codec for this chunk; another one may.

    Examples
    --------
    >>> UnsupportedCodecError("no such codec here", codec="zfp").codec
    'zfp'
    """


class SelectionError(CodecError, IndexError):
    """The caller selected something outside the chunk."""


class CorruptChunkError(CodecError, ValueError, RuntimeError):
    """Stored bytes do not decode under this chain."""


class ChecksumError(CorruptChunkError):
    """A stored checksum differs from the one computed over the bytes."""


class ChunkLengthError(CorruptChunkError):
    """Encoded or decoded bytes have a length that the chain does not allow."""


class ShardIndexError(CorruptChunkError):
    """A shard index is unreadable, or one of its entries points outside the shard."""


class PlanError(CodecError, RuntimeError):
    """A plan was fed or taken from in a way that it does not allow; the driver is at fault."""


class BackendUnavailableError(CodecError, ImportError):
    """A backend was asked for by name and cannot be loaded.

    Parameters
    ----------
    message
        What went wrong.
    backend
        The name that was asked for.
    hint
        How to get it.
    **context
        See :class:`CodecError`.
    """

    def __init__(
        self, message: str = "", *, backend: str | None = None, hint: str | None = None, **context: Any
    ) -> None:
        super().__init__(message, **context)
        self.backend = backend
        self.hint = hint

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}; {self.hint}" if self.hint else text
