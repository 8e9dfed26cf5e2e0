"""``python -m bagwise.cli``, for when the program is not on the path."""

from bagwise.cli import main

main()
