"""The command line."""

from driftline.app.cli.main import main as main
