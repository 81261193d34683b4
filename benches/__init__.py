"""Benchmarks of chunkwright against everything else that reads and writes zarr from Python.

``make bench`` or ``python -m benches`` runs them; ``python -m benches --help`` lists what can be chosen. All contenders
run in one process on the same bytes and take turns, and what each of them reads or writes is compared bit by bit before
it is timed. From the ground up:

``data``, ``layouts``, ``operations``
    What is stored, how it is cut and compressed, and what is done with it.
``places``
    Where the objects of an array are: local files, memory, obstore, fsspec, zip, a store with latency.
``rivals``
    Who competes, each behind the same small interface.
``measure``, ``trial``, ``results``
    How times are taken, compared and kept.
``suites``
    Which cells are run: the grid, latency, crops, the sweep of inner chunks, memory.
``report``
    Tables, verdicts, plots and the HTML page, made from the kept results alone.
"""
