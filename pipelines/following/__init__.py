"""Input that never ends: what the jobs share that follow their inputs. Options (`options`), the
file watcher (`watcher`), the commits of a job (`commits`), and the loop (`loop`). Nothing here
knows a job: a job tells which files it has processed, and processes more of them."""
