"""The job `report`: what a page needs (`report`), its options (`options`), and its facts (`facts`).

Facts come from the tokenizer's directory (`vocabulary`, `scripts`), from measures of texts
(`pipelines.comparing`), and from the words of a word table (`words`, `cuts`, `cutters`). The page
is made of facts alone: its HTML (`page`, with the files page.html, page.css and page.js), its plots
(`plots`, `charts`, `uses`), its numbers (`numbers`). It knows comparing, training and counting; it
does not know encoding or the command line."""
