"""Answer spans: where a text answers a question (Rajpurkar et al. 2016; 2018 with questions without an answer)."""
