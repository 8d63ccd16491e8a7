"""What the cells of the book's pages show, one module a page. Pure: a version in, things to display out."""
