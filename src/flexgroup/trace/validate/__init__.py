"""What may be wrong with the files of a trace set, and finding it.

`columns` compares a file with the schema, `footers` looks at every file without reading its
events, as a reader does before it trusts them, and `report` goes through all rows.
"""
