"""A profile: YAML -> Profile, its prompts and its points. The YAML files are beside the modules.

It says what to serve and how to measure it. Nothing here starts anything or knows an engine's flags: what of them
matters (which ones draft) its engine answers. No pandas.
"""
