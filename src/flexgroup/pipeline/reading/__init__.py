"""Trace sets as Spark reads them: from files of this machine, or from anywhere it can reach."""
