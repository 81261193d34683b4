"""What the user chose: which backends, how strict, how many threads.

Choices are read from zarr's configuration with a default of our own each time, never by registering
defaults, so that importing the plugin changes nothing. Backend, strictness and the largest chunk are read
when a pipeline is made and stay with it; limits of threads and of kept indexes are read at each call.
:class:`use` overrides backend and strictness for the arrays that are opened inside it, in its own context only.

Backends are found by name in the entry-point group ``chunkwright.backends``, and only those that are asked
for are imported. Under ``auto`` a backend that is installed but does not load is logged and passed over,
because a broken optional package must not make data unreadable.
"""

from __future__ import annotations

import logging
import operator
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from functools import cache
from importlib.metadata import entry_points
from types import TracebackType
from typing import Any, Self

import attrs
from zarr.core.config import config

from chunkwright.chain import MAX_CHUNK_BYTES
from chunkwright.errors import BackendUnavailableError, ConfigurationError
from chunkwright.ports import Backend

__all__ = ("Settings", "backends_for", "max_workers", "read_settings", "setting", "shard_index_cache", "use")

logger = logging.getLogger("chunkwright_zarr")

GROUP = "chunkwright.backends"
PORTABLE = "numcodecs"
FAST = "rust"
AUTO = "auto"

PIPELINE = "chunkwright_zarr.CodecPipeline"

MAX_THREADS = 1 << 20
MAX_NBYTES = 1 << 48

SHARD_INDEX_CACHE = 64 << 20

TRUE = ("true", "yes", "on", "1")
FALSE = ("false", "no", "off", "0", "")


@attrs.frozen
class Settings:
    """What is fixed when a pipeline is made.

    Parameters
    ----------
    backend
        ``auto``, ``rust``, ``numcodecs``, or the name of an entry point.
    strict
        Raise instead of falling back.
    max_chunk_bytes
        Bytes that a chunk of elements of variable length may decode to.

    Examples
    --------
    >>> Settings()
    Settings(backend='auto', strict=False, max_chunk_bytes=2147483648)
    """

    backend: str = AUTO
    strict: bool = False
    max_chunk_bytes: int = MAX_CHUNK_BYTES


_override: ContextVar[tuple[str | None, bool | None]] = ContextVar("chunkwright_zarr_use", default=(None, None))


def read_settings() -> Settings:
    """Read what is configured now.

    Returns
    -------
    Settings
        From :class:`use`, else from zarr's configuration, else the defaults.

    Raises
    ------
    ConfigurationError
        When the configured backend is not a name, or another value is not of its kind.

    Examples
    --------
    >>> with use(backend="numcodecs"):
    ...     read_settings().backend
    'numcodecs'
    """
    backend, strict = _override.get()
    if backend is None:
        backend = config.get("codec_pipeline.backend", AUTO) or AUTO
    if strict is None:
        strict = _truth(config.get("codec_pipeline.strict", False))
    if not isinstance(backend, str):
        raise ConfigurationError("codec_pipeline.backend must be a name", found=repr(backend))
    return Settings(backend, strict, _nbytes("codec_pipeline.max_chunk_bytes", MAX_CHUNK_BYTES, 1))


def setting(key: str) -> Any:
    """Look up one of zarr's settings, as its ``config.get`` does in five times the time; reads ask for several.

    Parameters
    ----------
    key
        A section and a name in it.

    Returns
    -------
    Any
        None where nothing is configured.

    Examples
    --------
    >>> setting("async.concurrency"), setting("async.nothing")
    (10, None)
    """
    value: Any = config.config
    for name, other in _spellings(key):
        try:
            value = value[name] if name in value else value[other]
        except (TypeError, KeyError):
            return None
    return value


@cache
def _spellings(key: str) -> tuple[tuple[str, str], ...]:
    """Both ways in which a configuration may have the parts of a key."""
    return tuple((name, name.replace("_", "-")) for name in key.split("."))


def _truth(value: Any) -> bool:
    """A Boolean; environment variables may arrive as text. A word that was meant to be one must not turn it off."""
    text = value.strip().lower() if isinstance(value, str) else value
    if text in TRUE or text in (True, 1):
        return True
    if text in FALSE or text in (None, False, 0):
        return False
    raise ConfigurationError("codec_pipeline.strict must be true or false", found=repr(value))


def _nbytes(key: str, default: int, least: int) -> int:
    """A number of bytes; the default where nothing is configured."""
    value = setting(key)
    if value is None:
        return default
    try:
        nbytes = operator.index(int(value) if isinstance(value, str) else value)
    except (TypeError, ValueError):
        nbytes = -1
    if isinstance(value, bool) or nbytes < least:
        raise ConfigurationError(f"{key} must be a number of bytes", found=repr(value))
    return min(nbytes, MAX_NBYTES)


def shard_index_cache() -> int:
    """Read how many bytes of shard indexes may be kept from one call to the next.

    Returns
    -------
    int
        ``codec_pipeline.shard_index_cache``; 0 turns it off.

    Raises
    ------
    ConfigurationError
        When it is not a number of bytes.

    Examples
    --------
    >>> shard_index_cache()
    67108864
    """
    return _nbytes("codec_pipeline.shard_index_cache", SHARD_INDEX_CACHE, 0)


def max_workers() -> int | None:
    """Read how many threads one call may use.

    Returns
    -------
    int or None
        ``codec_pipeline.max_workers``, else ``threading.max_workers``, else None: as many as there are CPUs.

    Examples
    --------
    >>> import zarr
    >>> with zarr.config.set({"codec_pipeline.max_workers": 3}):
    ...     max_workers()
    3
    """
    for key in ("codec_pipeline.max_workers", "threading.max_workers"):
        value = setting(key)
        if value is None:
            continue
        try:
            # No machine has more threads; a backend may count them in a machine word.
            return min(max(1, int(value)), MAX_THREADS)
        except (TypeError, ValueError, OverflowError):
            logger.warning("ignored %s: %r is not a number", key, value)
    return None


class use(AbstractContextManager["use"]):
    """Open arrays with this pipeline, and with a backend of one's choice, inside a ``with`` block.

    Arrays that were opened inside keep their choice after it. The choice of backend and strictness holds in
    the current context (thread or task) only; that arrays are opened with this pipeline is a setting of
    zarr's, which holds for the whole process until the block ends.

    Parameters
    ----------
    backend
        ``auto``, ``rust``, ``numcodecs``, or the name of an entry point; None: as configured.
    strict
        Raise instead of falling back; None: as configured.

    Examples
    --------
    >>> import zarr
    >>> with use(backend="numcodecs"):
    ...     array = zarr.create_array({}, shape=(4,), dtype="i4")
    >>> array[:].tolist()
    [0, 0, 0, 0]
    """

    def __init__(self, *, backend: str | None = None, strict: bool | None = None) -> None:
        self._choice = (backend, strict)
        self._tokens: list[Token[tuple[str | None, bool | None]]] = []
        self._settings: list[Any] = []

    def __enter__(self) -> Self:
        backend, strict = self._choice
        outer_backend, outer_strict = _override.get()
        choice = (outer_backend if backend is None else backend, outer_strict if strict is None else strict)
        if choice[0] is not None:
            backends_for(choice[0])
        self._settings.append(config.set({"codec_pipeline.path": PIPELINE}))
        self._settings[-1].__enter__()
        self._tokens.append(_override.set(choice))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _override.reset(self._tokens.pop())
        self._settings.pop().__exit__(kind, error, traceback)


_loaded: dict[str, Backend] = {}
_absent: set[str] = set()


def backends_for(choice: str) -> tuple[Backend, ...]:
    """Load the backends that a choice stands for, in order of preference.

    Parameters
    ----------
    choice
        ``auto``, ``rust``, ``numcodecs``, or the name of an entry point.

    Returns
    -------
    tuple of Backend
        At least one; the portable backend comes last.

    Raises
    ------
    BackendUnavailableError
        When a backend that was asked for by name is not installed, or does not load.

    Examples
    --------
    >>> [backend.name for backend in backends_for("numcodecs")]
    ['numcodecs']
    """
    if choice == AUTO:
        fast = _optional(FAST)
        return (_load(PORTABLE),) if fast is None else (fast, _load(PORTABLE))
    if choice == PORTABLE:
        return (_load(PORTABLE),)
    return _load(choice), _load(PORTABLE)


def _optional(name: str) -> Backend | None:
    """A backend that may be absent; one that does not load is logged, once."""
    if name in _loaded:
        return _loaded[name]
    if name in _absent:
        return None
    try:
        if entry_points(group=GROUP, name=name):
            return _load(name)
    except BackendUnavailableError as error:
        logger.warning("%s", error)
    # Looking through all installed distributions takes milliseconds, and every array that is opened asks.
    _absent.add(name)
    return None


def _load(name: str) -> Backend:
    """A backend of this name; threads that ask at the same time get the same object."""
    if name not in _loaded:
        _loaded.setdefault(name, _imported(name))
    return _loaded[name]


def _imported(name: str) -> Backend:
    found = entry_points(group=GROUP, name=name)
    if not found:
        hint = f"install chunkwright-{name}" if name in (FAST, PORTABLE) else f"installed are {_names()}"
        raise BackendUnavailableError(f"no backend named {name!r} is installed", backend=name, hint=hint)
    try:
        made = next(iter(found)).load()
        backend: Backend = made() if isinstance(made, type) else made
    except Exception as error:
        message, hint = f"the backend {name!r} is installed but does not load", f"{type(error).__name__}: {error}"
        raise BackendUnavailableError(message, backend=name, hint=hint) from error
    return backend


def _names() -> str:
    return ", ".join(sorted({point.name for point in entry_points(group=GROUP)})) or "none"
