"""Chunks of 6 x 7 numbers as numcodecs 0.17.1 encodes them (zstd 1.5.6, c-blosc 1.21, zlib, pcodec 1.1)."""

from __future__ import annotations

from typing import Any

__all__ = ("VECTORS",)

VECTORS: tuple[tuple[dict[str, Any], str], ...] = (
    (
        {"name": "zstd", "configuration": {"level": 3, "checksum": True}},
        "KLUv/SSopQEApAIAAAAABgAAAAwAAAASAAAAGAAAAB4AAAAkAAAAKgAAADAAAAA2AAAAPAACAPWpBISBMuZXmGg=",
    ),
    (
        {"name": "gzip", "configuration": {"level": 5}},
        "H4sIAMrBDWsA/2NgYGBgA2IeIBYCYgkglgNiFSDWAmIDIDYDYhsGCBgotQC/OYjnqAAAAA==",
    ),
    (
        {
            "name": "blosc",
            "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
        },
        "AgExBKgAAACoAAAAMgAAABQAAAAaAAAAvwAGDBIYHiQqMDY8CwAMHwABAGVQAAAAAAA=",
    ),
    (
        {
            "name": "blosc",
            "configuration": {"cname": "blosclz", "clevel": 9, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 0},
        },
        "AgEWBKgAAACoAAAAuAAAAAAAAAAGAAAADAAAABIAAAAYAAAAHgAAACQAAAAqAAAAMAAAADYAAAA8AAAAAAAAAAYAAAAMAAAAEgAA"
        "ABgAAAAeAAAAJAAAACoAAAAwAAAANgAAADwAAAAAAAAABgAAAAwAAAASAAAAGAAAAB4AAAAkAAAAKgAAADAAAAA2AAAAPAAAAAAA"
        "AAAGAAAADAAAABIAAAAYAAAAHgAAACQAAAAqAAAAMAAAAA==",
    ),
    (
        {"name": "crc32c", "configuration": {}},
        "AAAAAAYAAAAMAAAAEgAAABgAAAAeAAAAJAAAACoAAAAwAAAANgAAADwAAAAAAAAABgAAAAwAAAASAAAAGAAAAB4AAAAkAAAAKgAA"
        "ADAAAAA2AAAAPAAAAAAAAAAGAAAADAAAABIAAAAYAAAAHgAAACQAAAAqAAAAMAAAADYAAAA8AAAAAAAAAAYAAAAMAAAAEgAAABgA"
        "AAAeAAAAJAAAACoAAAAwAAAAeydGKg==",
    ),
    ({"name": "numcodecs.zlib", "configuration": {}}, "eAFjYGBgYANiHiAWAmIJIJYDYhUg1gJiAyA2A2IbIAaBgVILAH83BLc="),
    (
        {"name": "numcodecs.bz2", "configuration": {}},
        "QlpoMTFBWSZTWYS7I9cAAAH4AEkEEEEEEEEEIAAxA0DQClSjB6mmat2pwcnR2eGHpluyqN2qHwu5IpwoSEJdkeuA",
    ),
    (
        {"name": "numcodecs.lzma", "configuration": {}},
        "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4ACnABxdAABof/8FmQZwcldKvql0z7kZAkgTIccO713oIAAAHjgqFaN6Xo8AATioAQAA"
        "AC/il9OxxGf7AgAAAAAEWVo=",
    ),
    (
        {"name": "numcodecs.lz4", "configuration": {}},
        "qAAAAPAaAAAAAAYAAAAMAAAAEgAAABgAAAAeAAAAJAAAACoAAAAwAAAANgAAADwpAA8sAGNQADAAAAA=",
    ),
    (
        {"name": "numcodecs.adler32", "configuration": {}},
        "twQ3fwAAAAAGAAAADAAAABIAAAAYAAAAHgAAACQAAAAqAAAAMAAAADYAAAA8AAAAAAAAAAYAAAAMAAAAEgAAABgAAAAeAAAAJAAA"
        "ACoAAAAwAAAANgAAADwAAAAAAAAABgAAAAwAAAASAAAAGAAAAB4AAAAkAAAAKgAAADAAAAA2AAAAPAAAAAAAAAAGAAAADAAAABIA"
        "AAAYAAAAHgAAACQAAAAqAAAAMAAAAA==",
    ),
    (
        {"name": "numcodecs.crc32", "configuration": {}},
        "vzmI5wAAAAAGAAAADAAAABIAAAAYAAAAHgAAACQAAAAqAAAAMAAAADYAAAA8AAAAAAAAAAYAAAAMAAAAEgAAABgAAAAeAAAAJAAA"
        "ACoAAAAwAAAANgAAADwAAAAAAAAABgAAAAwAAAASAAAAGAAAAB4AAAAkAAAAKgAAADAAAAA2AAAAPAAAAAAAAAAGAAAADAAAABIA"
        "AAAYAAAAHgAAACQAAAAqAAAAMAAAAA==",
    ),
    (
        {"name": "numcodecs.fletcher32", "configuration": {}},
        "AAAAAAYAAAAMAAAAEgAAABgAAAAeAAAAJAAAACoAAAAwAAAANgAAADwAAAAAAAAABgAAAAwAAAASAAAAGAAAAB4AAAAkAAAAKgAA"
        "ADAAAAA2AAAAPAAAAAAAAAAGAAAADAAAABIAAAAYAAAAHgAAACQAAAAqAAAAMAAAADYAAAA8AAAAAAAAAAYAAAAMAAAAEgAAABgA"
        "AAAeAAAAJAAAACoAAAAwAAAABLa/QA==",
    ),
    (
        {"name": "numcodecs.jenkins_lookup3", "configuration": {}},
        "AAAAAAYAAAAMAAAAEgAAABgAAAAeAAAAJAAAACoAAAAwAAAANgAAADwAAAAAAAAABgAAAAwAAAASAAAAGAAAAB4AAAAkAAAAKgAA"
        "ADAAAAA2AAAAPAAAAAAAAAAGAAAADAAAABIAAAAYAAAAHgAAACQAAAAqAAAAMAAAADYAAAA8AAAAAAAAAAYAAAAMAAAAEgAAABgA"
        "AAAeAAAAJAAAACoAAAAwAAAA6HG2Tw==",
    ),
    (
        {"name": "numcodecs.shuffle", "configuration": {}},
        "AAYMEhgeJCowNjwABgwSGB4kKjA2PAAGDBIYHiQqMDY8AAYMEhgeJCowAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAAAAAAAAAA",
    ),
    ({"name": "numcodecs.pcodec", "configuration": {}}, "cGNvIQMAhQoEAQMpAAAQYQIAgvj//w/QDQAAAAEAAACAs9guSBMA"),
)
