"""The job `report`: what a page needs (`report`), its options (`options`), and its facts (`facts`).

Facts come from the tokenizer's directory (`vocabulary`, `scripts`), from measures of texts
(`pipelines.comparing`), and from the words of a word table (`words`, `tokenized_words`). The page
is rendered from facts alone (`page`, with page.html, page.css and page.js; its plots in `plots`).
This folder knows comparing, training and counting, but not encoding or the command line."""
