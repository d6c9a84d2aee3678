"""What the book's chapters say: one module a notebook, of the same name, with its data, tables, sentences and figures.

A module has `load(runs, profile)`, which reads and derives what its notebook shows; functions `*_table` and
`*_sentence`, which put it in words; and `glue_values` where pages of the book quote the chapter. A test holds that
`glue_values` makes exactly the names that the pages ask for. What `analyse`, `drafter` or `claims` could own is not
computed here.
"""
