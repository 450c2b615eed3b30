"""What ordered messaging promises, as checks of a recorded run.

One file per property: its definition, its verdict, a witness and an explanation.
`flexgroup.properties.catalogue` names them all and runs them.
"""
