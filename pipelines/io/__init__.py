"""Reading and writing files. Nothing here knows a job, or Beam.

Reading: `input_files` finds the inputs, and `inputs` opens each with the `reader.Reader` of its
format (`parquet_input`, `arrow_input`, `csv_input`, `json_input`, `line_input`). `columns` finds
texts in tables, and `reading` checks that files have not changed. Writing: `outputs` writes
complete files, `publishing` writes several files as one, and `owned` is for directories in which a
job may delete files. All of it goes through `wordpiece_core.storage`, the only module that touches
a file system.
"""
