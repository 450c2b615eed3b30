"""Many jobs on Spark, or one that is too large for a machine: what is finished is in files of a
folder that all machines share, and is not done again."""
