"""Networks of other programs: configurations, tensor names, to and from ours; one file a family."""
