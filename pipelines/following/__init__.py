"""Input that never ends: what jobs share that go on with new files until they are stopped. The
options (`options`), which files have arrived (`arrivals`), what was committed and when (`commits`),
and the loop (`loop`). It knows files, but no job: a job says which files it has done,
and does more of them."""
