"""A zarr-python codec pipeline on chunkwright."""
