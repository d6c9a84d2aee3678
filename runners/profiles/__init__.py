"""A profile: YAML -> Profile, its prompts and its points. The YAML files lie beside the modules.

Says what to serve and how to measure it; starts nothing and knows no engine's flags. No pandas.
"""
