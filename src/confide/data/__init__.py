"""Data to train and test on (`sets`, `split`, `batches`), and files of predictions (`opening`)."""
