"""The list of packages, computed: the folder `tools` is installed as `longrl_tools`.

A slime job has Megatron-LM's root on PYTHONPATH, whose own packages `tools` and `tests` would
shadow ours; the mapping cannot be written together with package discovery in pyproject.toml.
"""

from setuptools import find_packages, setup

same_name = find_packages(include=["rewards*", "slime_ext*", "launch*"])
tools = find_packages(include=["tools*"])
setup(
    packages=same_name + ["longrl_" + name for name in tools],
    package_dir={"longrl_tools": "tools"},
)
