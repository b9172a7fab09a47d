"""The list of packages, computed: two folders are installed under names of our own.

`tools` becomes `longrl_tools`, because a slime job has Megatron-LM's root on PYTHONPATH, whose own
packages `tools` and `tests` would shadow ours; `configs` becomes `longrl_configs`, because the bare
name is nobody's. The mapping cannot be written together with package discovery in pyproject.toml.
"""

from setuptools import find_namespace_packages, setup

# Namespace packages are included: folders of data (a checkpoint, stub packages) count as such.
same_name = find_namespace_packages(include=["rewards*", "slime_ext*", "launch*"])
renamed = find_namespace_packages(include=["tools*", "configs*"])
setup(
    packages=same_name + ["longrl_" + name for name in renamed],
    package_dir={"longrl_tools": "tools", "longrl_configs": "configs"},
)
