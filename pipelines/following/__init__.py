"""Input that never ends: what jobs share that go on with new files until they are stopped. The
options (`options`), which files have arrived (`arrivals`), the table of what was committed and when
(`epochs`), and the loop (`loop`). It knows files, but no job: a job says which files it has done,
and does more of them."""
