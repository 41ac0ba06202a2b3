"""The paper beside our numbers: its tables, figures and claims."""
