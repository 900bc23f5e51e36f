from hypothesis import settings

# A first call compiles, so examples have no deadline.
settings.register_profile("driftline", deadline=None, derandomize=True)
settings.load_profile("driftline")
