"""``python -m driftline``: the command line."""

from driftline.app.cli import main

if __name__ == "__main__":
    main()
