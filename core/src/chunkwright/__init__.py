"""Storage-free Zarr chunk codecs."""
