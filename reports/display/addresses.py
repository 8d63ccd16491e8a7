"""Where the pages are. Pure."""


def page_of(series: str) -> str:
    """The page's address without its ending, as Jupyter Book makes it of the file's name."""
    return f"series-{series}".replace("_", "-").replace(".", "-").lower()
