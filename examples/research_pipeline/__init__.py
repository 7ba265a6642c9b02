"""Several tools in a row, each result kept once: search, retrieve, extract, register, report."""
