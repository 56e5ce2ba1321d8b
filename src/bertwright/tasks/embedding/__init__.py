"""Vectors of texts: texts that belong together get similar ones (Reimers and Gurevych 2019; Gao et al. 2021)."""
