"""The one model of the memory, disk and time that a run takes, which `check`, `plan` and `init` ask. No torch."""
