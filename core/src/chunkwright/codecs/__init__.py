"""Codec metadata, one module a codec."""
