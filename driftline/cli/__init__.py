"""The command line."""

from driftline.cli.main import main as main
