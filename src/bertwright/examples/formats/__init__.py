"""The file formats of the field for finished examples: what others have made can be read, and what others read made."""
