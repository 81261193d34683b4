"""The battery that a backend has to pass, ours and anybody's.

:func:`checks` makes one check per codec, data type and shape that a backend supports. A check is called without
arguments and raises AssertionError, so any test framework will do; with pytest::

    @pytest.mark.parametrize("check", checks(MyBackend()), ids=str)
    def test_battery(check):
        check()

Nothing here needs more than NumPy. What the backend says it does not support is not checked; :func:`unsupported`
lists it, so that a test can say what it expects to be there.
"""

from __future__ import annotations

from chunkwright.testing.battery import Check, checks, unsupported

__all__ = ("Check", "checks", "unsupported")
