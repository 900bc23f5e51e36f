"""``driftline completion``: shell completion of commands and options."""

from __future__ import annotations

import click

__all__ = ["completion"]


@click.command(
    short_help="Print the completion script of a shell.",
    epilog="""
\b
Put the line for your shell into its start-up file:
  bash   eval "$(driftline completion bash)"      in ~/.bashrc
  zsh    eval "$(driftline completion zsh)"       in ~/.zshrc
  fish   driftline completion fish | source       in ~/.config/fish/config.fish
""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and files in SHELL."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:
        raise click.ClickException(f"there is no completion for {shell}")
    group = context.find_root().command
    script = made(group, {}, "driftline", "_DRIFTLINE_COMPLETE")
    click.echo(script.source_template % script.source_vars())
