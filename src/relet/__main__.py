"""`python -m relet`: the command line, for environments whose scripts are not on the path."""

from relet.cli.entry import main

if __name__ == "__main__":
    main()
