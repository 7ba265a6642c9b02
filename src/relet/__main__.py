"""`python -m relet`: the command line, for environments whose scripts are not on the path."""

from relet.cli.main import main

if __name__ == "__main__":
    main()
