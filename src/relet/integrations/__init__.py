"""Other libraries, joined to relet; each is an extra, imported when it is first used."""
