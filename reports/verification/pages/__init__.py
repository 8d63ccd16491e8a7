"""The figures of each page that no row of a case has, computed again; a module a page."""
