"""Generator of the built-in wiki: hand-written pages, and articles that a grammar writes about a made-up world.

`python -m tools.sample.build` writes the two exports that are installed.
"""
