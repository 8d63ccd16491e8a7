"""One folder a kind of page. A topic asks ``analysis`` and ``sets``, and shows the answer through ``display``."""
