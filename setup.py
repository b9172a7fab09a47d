"""The list of packages, computed: the folder `tools` is installed as `longrl_tools`.

A slime job has Megatron-LM's root on PYTHONPATH, whose own packages `tools` and `tests` would
shadow ours; the mapping cannot be written together with package discovery in pyproject.toml.
"""

from setuptools import find_namespace_packages, setup

# Namespace packages are included: folders of data (a checkpoint, stub packages) count as such.
same_name = find_namespace_packages(include=["rewards*", "slime_ext*", "launch*"])
tools = find_namespace_packages(include=["tools*"])
setup(
    packages=same_name + ["longrl_" + name for name in tools],
    package_dir={"longrl_tools": "tools"},
)
