"""What is done with a run that fits into memory, read from its files: by a task of Spark, or here.

Nothing in this package needs Spark, which hands out the runs of large trace sets. Small ones are
gone through one run after the other (`each_run`), in less time than Spark takes to start.
"""
