"""The ranks of one training: how they meet, what they sum, and how a lost one is noticed."""
