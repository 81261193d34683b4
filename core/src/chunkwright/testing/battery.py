"""The checks, and the functions that they call.

Each check prepares one chain for one backend and asks one question of it. Where the reference backend can run the
chain too, what one of the two encodes has to be what the other decodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.chain import CodecChain
from chunkwright.errors import ChecksumError, CodecError, CorruptChunkError, UnsupportedCodecError
from chunkwright.ports import Backend
from chunkwright.prepared import PreparedChain
from chunkwright.reference import ReferenceBackend
from chunkwright.scatter import Copier
from chunkwright.spec import FixedSize
from chunkwright.testing.cases import BYTES_CODECS, DTYPES, SHAPES, chains, values, vectors
from chunkwright.testing.forms import entries_of_every_form, out_shape_of
from chunkwright.testing.shards import shard_checks

__all__ = ("Check", "checks", "unsupported")

_CHECKSUMS = ("crc32c", *(f"numcodecs.{name}" for name in ("adler32", "crc32", "fletcher32", "jenkins_lookup3")))


@attrs.frozen
class Check:
    """One question to a backend.

    Parameters
    ----------
    name
        What is checked, unique within the battery.
    ask
        Raises AssertionError when the answer is wrong.

    Examples
    --------
    >>> str(Check("nothing", lambda: None))
    'nothing'
    """

    name: str
    ask: Callable[[], None]

    def __call__(self) -> None:
        """Ask the question."""
        self.ask()

    def __str__(self) -> str:
        return self.name


def checks(backend: Backend) -> list[Check]:
    """Make every check that a backend's codecs allow.

    Parameters
    ----------
    backend
        The backend.

    Returns
    -------
    list of Check
        Always the same ones in the same order.

    Examples
    --------
    >>> for check in checks(ReferenceBackend())[:20]:
    ...     check()
    """
    found: list[Check] = []
    for dtype in DTYPES:
        for shape in SHAPES:
            for name, codecs in chains(dtype, len(shape)):
                chain = _prepared(codecs, dtype, shape, backend)
                if chain is not None:
                    label = f"{name} of {np.dtype(dtype)} {shape}"
                    found.append(Check(f"round trip: {label}", partial(_round_trip, chain, codecs)))
    found += [Check(f"entries: {form}", partial(_entries, backend, form)) for form in range(40)]
    for name, codecs, array, encoded in vectors():
        chain = _prepared(codecs, array.dtype, array.shape, backend)
        if chain is not None:
            found.append(Check(f"vector: {name}", partial(_vector, chain, array, encoded)))
            found.append(Check(f"cut short: {name}", partial(_cut_short, chain, encoded)))
            found.append(Check(f"changed: {name}", partial(_changed, chain, encoded)))
            if name in _CHECKSUMS:
                found.append(Check(f"changed by a bit: {name}", partial(_changed_by_a_bit, chain, encoded)))
    found += [Check(name, ask) for name, ask in shard_checks(backend)]
    return _unique(found) + list(_variable(backend))


def _unique(found: list[Check]) -> list[Check]:
    """Number checks of one name."""
    seen: dict[str, int] = {}
    result = []
    for check in found:
        number = seen[check.name] = seen.get(check.name, 0) + 1
        result.append(check if number == 1 else attrs.evolve(check, name=f"{check.name} #{number}"))
    return result


def unsupported(backend: Backend) -> dict[str, str]:
    """List the codecs of the battery that a backend does not support.

    Parameters
    ----------
    backend
        The backend.

    Returns
    -------
    dict
        The reason by name.

    Examples
    --------
    >>> sorted(unsupported(ReferenceBackend()))[0]
    'blosc'
    """
    array = np.zeros((6, 7), "<i4")
    reasons: dict[str, str] = {}
    for codec in BYTES_CODECS:
        bound = CodecChain.from_json([{"name": "bytes", "configuration": {"endian": "little"}}, codec])
        try:
            bound.bind(array.dtype, 0).prepare(array.shape, backends=[backend])
        except UnsupportedCodecError as error:
            reasons[codec["name"]] = error.message
    return reasons


def _prepared(codecs: Sequence[Any], dtype: Any, shape: tuple[int, ...], backend: Backend) -> PreparedChain | None:
    fill = values(dtype, (), 9)[()]
    bound = CodecChain.from_json(list(codecs)).bind(np.dtype(dtype), fill)
    try:
        return bound.prepare(shape, backends=[backend])
    except UnsupportedCodecError:
        return None


def _round_trip(chain: PreparedChain, codecs: Sequence[Any]) -> None:
    dtype, shape = chain.spec.dtype.numpy, chain.spec.shape
    array = values(dtype, shape)
    encoded = _encoded(chain, array)
    if isinstance(chain.encoded_size, FixedSize):
        assert len(memoryview(encoded).cast("B")) == chain.encoded_size.nbytes
    expected = chain.decode(encoded)
    # Only this codec loses bits, and it may do so once.
    loses = any(codec["name"] == "numcodecs.bitround" for codec in codecs)
    _same(chain.decode(_encoded(chain, expected)) if loses else array, expected)
    _same_everywhere(chain, encoded, expected)
    full = chain.spec.full()
    assert chain.encode(full) is None
    if not loses:
        _same(chain.decode(_encoded(chain, full)), full)
    reference = _prepared(codecs, dtype, shape, ReferenceBackend())
    if reference is not None:
        _same(reference.decode(encoded), array)
        _same(chain.decode(_encoded(reference, array)), array)


def _encoded(chain: PreparedChain, array: NDArray[Any]) -> Any:
    encoded = chain.encode(array, keep_empty=True)
    assert encoded is not None
    assert memoryview(encoded).readonly
    return encoded


def _same(found: NDArray[Any], expected: NDArray[Any]) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if expected.dtype.names is None:
        assert found.tobytes() == expected.tobytes()
    else:
        for name in expected.dtype.names:
            _same(found[name], expected[name])


def _same_everywhere(chain: PreparedChain, encoded: Any, expected: NDArray[Any]) -> None:
    """Into memory that is contiguous, backwards, spread out, or of the other byte order; and by several at once."""
    dtype, shape = expected.dtype, expected.shape
    backwards: Any = (*(slice(None, None, -1) for _ in shape), ...)
    spread: Any = (*(slice(1, None, 2) for _ in shape), ...)
    for out in (
        np.empty(shape, dtype),
        np.empty(shape, dtype, order="F")[backwards],
        np.empty([2 * extent for extent in shape], dtype)[spread],
        np.empty(shape, dtype.newbyteorder()),
    ):
        chain.decode_into(encoded, out)
        _same(out.astype(dtype), expected)
        chain.decode_into(None, out)
        _same(out.astype(dtype), chain.spec.full())
    for array in chain.decode_many([encoded, None, encoded], max_workers=2)[::2]:
        assert array is not None
        _same(array, expected)
        assert array.flags.writeable


def _entries(backend: Backend, form: int) -> None:
    """What one entry takes and where it puts it, compared with NumPy."""
    shape, entries = entries_of_every_form(form)
    array = values("<i4", shape, form)
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    chain = _prepared(codecs, "<i4", shape, backend)
    assert chain is not None
    want, got = (np.zeros(out_shape_of(entries), "<i4") for _ in range(2))
    copier = Copier(entries)
    for row in range(len(entries)):
        copier.scatter(row, array, want)
    chain.decode_many_into([_encoded(chain, array)], entries, got)
    _same(got, want)
    base, chunk = values("<i4", shape, form + 1).copy(), values("<i4", shape, form + 1).copy()
    old = _encoded(chain, base)
    for row in range(len(entries)):
        copier.gather(row, want + 1, chunk)
    (run,) = chain.runs
    (encoded,) = backend.encode_from(run, want + 1, entries, base=[base], keep_empty=True)  # type: ignore[arg-type]
    assert encoded is not None
    _same(chain.decode(encoded), chunk)
    plan = chain.plan_write(entries, complete=np.zeros(1, bool), keep_empty=True)
    plan.feed(plan.needs["id"], [old])
    work = plan.take()
    assert work is not None
    ((_, rewritten),) = work.run(want + 1)
    assert rewritten is not None
    _same(chain.decode(rewritten), chunk)
    _same(chain.decode(old), values("<i4", shape, form + 1))


def _vector(chain: PreparedChain, array: NDArray[Any], encoded: bytes) -> None:
    _same(chain.decode(encoded), array)
    out = np.zeros((3, *array.shape), array.dtype)
    chain.decode_into(encoded, out[1])
    _same(out[1], array)
    assert not out[::2].any()
    _same(chain.decode(_encoded(chain, array)), array)


def _cut_short(chain: PreparedChain, encoded: bytes) -> None:
    for length in range(len(encoded)):
        error = _refusal(chain, [encoded, encoded[:length]])
        assert error is not None, f"{length} of {len(encoded)} bytes were accepted"
        assert error.codec is not None
        assert error.position == 1


def _refusal(chain: PreparedChain, buffers: list[bytes]) -> CorruptChunkError | None:
    try:
        chain.decode_many(buffers)
    except CorruptChunkError as error:
        return error
    return None


def _changed(chain: PreparedChain, encoded: bytes) -> None:
    """Any bytes are a chunk or a CodecError."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        changed = bytearray(encoded)
        for at in rng.integers(0, len(changed), rng.integers(1, 4)):
            changed[at] = rng.integers(0, 256)
        try:
            found = chain.decode(bytes(changed))
        except CodecError:
            continue
        assert found.shape == chain.spec.shape


def _changed_by_a_bit(chain: PreparedChain, encoded: bytes) -> None:
    for at in range(len(encoded)):
        changed = bytearray(encoded)
        changed[at] ^= 0x10
        assert isinstance(_refusal(chain, [bytes(changed)]), ChecksumError)


def _variable(backend: Backend) -> Iterator[Check]:
    texts = np.array(["", "a", "äöü", "\U0001f40d" * 3, "z" * 70, "0"], object).reshape(2, 3)
    octets = np.vectorize(lambda text: text.encode(), [object])(texts)
    for name, fill, array in (("vlen-utf8", "", texts), ("vlen-bytes", b"", octets)):
        own: dict[str, Any] = {"name": name}
        turned = {"name": "transpose", "configuration": {"order": [1, 0]}}
        for codecs in ([own], [own, {"name": "zstd"}], [turned, own]):
            bound = CodecChain.from_json(codecs).bind(array.dtype, fill)
            try:
                chain = bound.prepare(array.shape, backends=[backend])
            except UnsupportedCodecError:
                continue
            label = ", ".join(str(codec["name"]) for codec in codecs)
            yield Check(f"elements of variable length: {label}", partial(_elements, chain, array, fill))


def _elements(chain: PreparedChain, array: NDArray[Any], fill: Any) -> None:
    encoded = bytes(_encoded(chain, array))
    assert chain.decode(encoded).tolist() == array.tolist()
    out = np.full((4, 3), None, object)
    chain.decode_into(encoded, out[::2])
    assert out[::2].tolist() == array.tolist()
    chain.decode_into(None, out[::2])
    assert (out[::2] == fill).all()
    assert chain.encode(np.full(array.shape, fill, object)) is None
    for length in range(0, len(encoded), 3):
        error = _refusal(chain, [encoded[:length]])
        assert error is not None, f"{length} of {len(encoded)} bytes were accepted"
        assert error.codec is not None
