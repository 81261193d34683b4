"""Write the tables of docs/supported.md: each codec and data type is tried with each backend, never looked up.

``python -m tools.supported`` writes what is between the markers of the page, and with ``--check`` only tells whether
it would change. What there is to try comes from the registries of zarr-python and numcodecs
(:mod:`tools.supported.codecs`, :mod:`tools.supported.dtypes`); what it is tried with is in
:mod:`tools.supported.samples`, and a codec without a sample is an error. Nothing depends on the time, so that the same
code makes the same page.
"""
