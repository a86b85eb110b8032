"""The command line. `cli` declares the commands and what ends them; a file for each command calls
the job and says what came of it. What a job does is not decided here."""
