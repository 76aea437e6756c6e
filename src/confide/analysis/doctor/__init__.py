"""The traps that saved predictions hold, looked for in one pass. One class a trap: `observe(batch)`, `findings()`."""
