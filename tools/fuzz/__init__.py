"""Feeds damaged chunks to backends: ``python -m tools.fuzz --inputs 100000``, or ``make fuzz``.

An input is a number. With the seed it decides a chain (:mod:`tools.fuzz.targets`), how an encoded chunk of it is
damaged (:mod:`tools.fuzz.mutations`, :mod:`tools.fuzz.forms`), and how the result is decoded
(:mod:`tools.fuzz.uses`), so every input can be tried again alone. Each backend works in a process of its own
(:mod:`tools.fuzz.worker`), which is watched (:mod:`tools.fuzz.watch`): a crash or a hang ends the process, is noted,
and another one goes on after that input.

What has to hold for every input:

- the outcome is an array of the chain's shape and data type, or a ``CodecError`` that names a codec, and, of a batch,
  the position of the chunk;
- the process lives, no input takes more than ``--seconds`` of CPU time (a signal that ends the process; ten times as
  much of any time), and no Rust panic is met on the way;
- memory: resident memory at its peak (``VmHWM``, reset before each input) is at most eight times the chunk and 4 MiB
  above what it was (a batch has five chunks), and address space may grow by no more than 64 MiB (``RLIMIT_AS``), so
  that an allocation by a header's claim fails even if nobody touches it. Codecs of which the documentation says that
  they take more have allowances;
- afterwards a good chunk still decodes, with the same contexts, to what it was.
"""

from __future__ import annotations
