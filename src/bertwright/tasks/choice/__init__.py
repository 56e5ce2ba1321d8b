"""Multiple choice: which of several texts follows from, answers or explains another one (Zellers et al. 2018, SWAG)."""
