__all__ = ["version"]

def version() -> str:
    """Return the version of the native code."""
