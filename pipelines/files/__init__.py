"""Where data is. Nothing here knows a job, or Beam.

Reading: `input_files` finds the inputs, `inputs` opens them by their format (`parquet_input`,
`json_input`, `line_input`), `reading` sees that they are whole. Writing: `outputs` whole files,
`publishing` several as one, `owned` directories that a job may delete from. All of it goes through
`storage`, the only place that touches a file system.
"""
