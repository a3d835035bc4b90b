"""The tools that loom itself offers."""

from loom.tools._definitions import DATASET_TOOLS, DatasetTool
from loom.tools._handlers import dataset_tools, decode_arguments

__all__ = ["DATASET_TOOLS", "DatasetTool", "dataset_tools", "decode_arguments"]
