"""The pages: each is a text and a module of its name. They show figures and compute nothing."""
