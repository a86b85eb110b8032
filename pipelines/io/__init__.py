"""Read and write files. Nothing here knows a job, or Beam.

    input_files.py      which files are read, and the names of their shards
    datasets_files.py   files and splits that the library `datasets` knows
    inputs.py           open inputs: ranges and texts to count, shards to encode
    reader.py           what each format provides
    parquet_input.py, arrow_input.py, csv_input.py, json_input.py, line_input.py
                        one reader for each format
    columns.py          texts in columns
    schemas.py          one schema for several inputs
    reading.py          checks while inputs are read
    decompression.py    compressed text files
    yaml_text.py        YAML whose values are texts
    batches.py          record batches as bytes and in files
    outputs.py          complete files or none
    publishing.py       several files together
    owned.py            directories in which a job may delete files
    lock.py             one run at a time

All of it goes through `wordpiece_core.storage`, the only module that touches a file system.
"""
