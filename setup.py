"""The list of packages, the one thing pyproject.toml cannot express.

setuptools finds packages below one root; tracemill's four folders are four roots of one package.
Everything else about packaging is in pyproject.toml.
"""

import tomllib
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
with (here / "pyproject.toml").open("rb") as file:
    roots = tomllib.load(file)["tool"]["setuptools"]["package-dir"]

packages = [
    name
    for root, folder in roots.items()
    for name in [root, *(f"{root}.{below}" for below in find_packages(str(here / folder)))]
]
setup(packages=packages)
