"""What there is to know of numcodecs' codecs without importing numcodecs: kinds and names of options.

The first group is registered by zarr 3 under ``numcodecs.<id>``; the second occurs in Zarr v2 metadata only.
"""

from __future__ import annotations

import attrs

from chunkwright.codecs._base import Kind

__all__ = ("KNOWN", "Known")


@attrs.frozen
class Known:
    """One of numcodecs' codecs.

    Parameters
    ----------
    kind
        Its kind in a chain.
    required
        Options that it cannot do without.
    optional
        Other options.
    in_v3
        Whether Zarr v3 metadata may name it.
    """

    kind: Kind
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    in_v3: bool = True


_CHECKSUM = Known("bytes->bytes", (), ("location",))
_LEVEL = Known("bytes->bytes", (), ("level",))

KNOWN: dict[str, Known] = {
    "adler32": _CHECKSUM,
    "astype": Known("array->array", ("encode_dtype",), ("decode_dtype",)),
    "bitround": Known("array->array", ("keepbits",)),
    "blosc": Known("bytes->bytes", (), ("cname", "clevel", "shuffle", "blocksize", "typesize")),
    "bz2": _LEVEL,
    "crc32": _CHECKSUM,
    "crc32c": _CHECKSUM,
    "delta": Known("array->array", ("dtype",), ("astype",)),
    "fixedscaleoffset": Known("array->array", ("offset", "scale"), ("dtype", "astype")),
    "fletcher32": Known("bytes->bytes"),
    "gzip": _LEVEL,
    "jenkins_lookup3": Known("bytes->bytes", (), ("initval", "prefix")),
    "lz4": Known("bytes->bytes", (), ("acceleration",)),
    "lzma": Known("bytes->bytes", (), ("format", "check", "preset", "filters")),
    "packbits": Known("array->array"),
    "pcodec": Known(
        "array->bytes",
        (),
        ("level", "mode_spec", "delta_spec", "paging_spec", "delta_encoding_order", "equal_pages_up_to"),
    ),
    "quantize": Known("array->array", ("digits",), ("dtype", "astype")),
    "shuffle": Known("bytes->bytes", (), ("elementsize",)),
    "zfpy": Known("array->bytes", (), ("mode", "tolerance", "rate", "precision", "compression_kwargs")),
    "zlib": _LEVEL,
    "zstd": Known("bytes->bytes", (), ("level", "checksum")),
    "base64": Known("bytes->bytes", in_v3=False),
    "categorize": Known("array->array", ("labels", "dtype"), ("astype",), in_v3=False),
    "json2": Known(
        "array->bytes",
        (),
        (
            "encoding",
            "skipkeys",
            "ensure_ascii",
            "check_circular",
            "allow_nan",
            "sort_keys",
            "indent",
            "separators",
            "strict",
        ),
        in_v3=False,
    ),
    "msgpack2": Known("array->bytes", (), ("use_single_float", "use_bin_type", "raw"), in_v3=False),
    "pickle": Known("array->bytes", (), ("protocol",), in_v3=False),
    "vlen-array": Known("array->bytes", ("dtype",), in_v3=False),
}
"""By id. The ids ``vlen-utf8`` and ``vlen-bytes`` are the Zarr v3 codecs of these names."""
