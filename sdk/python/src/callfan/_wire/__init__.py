"""The wire protocol as values and bytes. Nothing here does input or output."""
