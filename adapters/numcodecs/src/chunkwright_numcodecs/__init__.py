"""The numcodecs backend of chunkwright."""
