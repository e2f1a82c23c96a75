"""Calls a function of the driver that a simulated GPU does not have, as a library in C would."""

import ctypes

import torch

torch.zeros(1, device="cuda")
driver = ctypes.CDLL("libcuda.so.1")
error, text = driver.cuMipmappedArrayCreate(None, None, 1), ctypes.c_char_p()
driver.cuGetErrorString(error, ctypes.byref(text))
raise RuntimeError(f"{error}: {text.value.decode()}")
