"""Drives chunkwright plans against stores."""
