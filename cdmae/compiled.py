"""Compile functions with numba, cached on disk next to the source or in the user's cache folder."""

from functools import partial

import numba

# Functions release the interpreter lock, and threads run them in parallel.
compiled = partial(numba.njit, nogil=True, cache=True)
