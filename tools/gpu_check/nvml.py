"""What NVML knows about the GPU, read through ctypes. Nothing here changes a setting."""

import ctypes
import os

CLOCK_SM, CLOCK_MEMORY = 1, 2
TEMPERATURE_OF_GPU = 0
UNKNOWN = (1 << 64) - 1


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint),
    ]


class Gpu:
    """The first GPU. A value that NVML does not have is None. Raises OSError without NVML."""

    def __init__(self, library=None):
        self.library = library or ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        if self.library.nvmlInit_v2():
            raise OSError("NVML cannot be used")
        if self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)):
            raise OSError("NVML has no GPU")

    def number(self, function: str, *arguments, type=ctypes.c_uint):
        """What an NVML function of one number says."""
        value = type()
        try:
            call = getattr(self.library, function)
        except AttributeError:  # an older driver
            return None
        return None if call(self.device, *arguments, ctypes.byref(value)) else value.value

    def used_bytes(self):
        """Memory in use on the device, by all processes."""
        memory = Memory()
        if self.library.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory)):
            return None
        return memory.used

    def process_bytes(self):
        """Memory in use by this process. In a container NVML may not know it."""
        count = ctypes.c_uint(64)
        rows = (Process * 64)()
        list_processes = self.library.nvmlDeviceGetComputeRunningProcesses_v3
        if list_processes(self.device, ctypes.byref(count), rows):
            return None
        used = [row.used for row in rows[: count.value] if row.pid == os.getpid()]
        return used[0] if used and used[0] != UNKNOWN else None

    def state(self) -> dict:
        """Clocks, power, temperature and memory now."""
        return {
            "sm_clock_mhz": self.number("nvmlDeviceGetClockInfo", CLOCK_SM),
            "memory_clock_mhz": self.number("nvmlDeviceGetClockInfo", CLOCK_MEMORY),
            "power_mw": self.number("nvmlDeviceGetPowerUsage"),
            "temperature_c": self.number("nvmlDeviceGetTemperature", TEMPERATURE_OF_GPU),
            "clock_limits": self.number(
                "nvmlDeviceGetCurrentClocksThrottleReasons", type=ctypes.c_ulonglong
            ),
            "used_bytes": self.used_bytes(),
        }
