"""Training: rounds of merges over words in memory, and what the job's rounds share with them
(`train`); the alphabet (`alphabet`); weights for groups of text (`smoothing`)."""
