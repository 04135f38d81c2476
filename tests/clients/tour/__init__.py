"""A tour of Queen's official Python client through everything it can do; `python -m tour` runs it."""
