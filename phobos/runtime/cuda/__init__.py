"""Kernels on a CUDA device: the driver alone is asked, and arrays of any library are taken as they are."""
