"""One command, or one small family of them, per file; `relet.cli.main` lists them."""
