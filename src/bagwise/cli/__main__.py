"""``python -m bagwise.cli``, for when the program is not on the path."""

from bagwise.cli import main

if __name__ == "__main__":  # worker processes import this file too
    main()
