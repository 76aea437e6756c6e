"""`confide check`: from predictions to plain data, and from there to a page and to figures."""
