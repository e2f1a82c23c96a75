"""What a C program sees of the driver and the runtime of a virtual GPU. Prints a JSON document.

The program has no torch: it calls CUDA as Triton's and bitsandbytes' C code does, through which no
C++ exception may pass.
"""

import ctypes
import json
import pathlib
import sys

CUBINS = pathlib.Path(sys.argv[1])
CUDA = ctypes.CDLL("libcuda.so.1")
RUNTIME = ctypes.CDLL("libcudart.so.13")
REGISTERS, SHARED, LOCAL, MAX_THREADS, DYNAMIC_SHARED = 4, 1, 3, 0, 8  # CU_FUNC_ATTRIBUTE_...


def text_of(function, code):
    text = ctypes.c_char_p()
    function(code, ctypes.byref(text))
    return text.value.decode()


def load(image):
    module = ctypes.c_void_p()
    return CUDA.cuModuleLoadData(ctypes.byref(module), image), module


def function_of(module, name):
    function = ctypes.c_void_p()
    return CUDA.cuModuleGetFunction(ctypes.byref(function), module, name), function


def attributes_of(function):
    def value(attribute):
        number = ctypes.c_int(-1)
        CUDA.cuFuncGetAttribute(ctypes.byref(number), attribute, function)
        return number.value

    return [value(one) for one in (REGISTERS, SHARED, LOCAL, MAX_THREADS)]


def launch(function, threads, shared=0, blocks=1):
    return CUDA.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, None, None, None)


def kernels():
    found = {}
    code, module = load((CUBINS / "sm_90.cubin").read_bytes())
    found["load"] = code
    for name in (b"add_neighbour", b"with_stack"):
        code, function = function_of(module, name)
        found[name.decode()] = attributes_of(function)
        again = function_of(module, name)[1]
        found["one kernel for a name"] = again.value == function.value
    function = function_of(module, b"add_neighbour")[1]
    found["launches"] = [launch(function, 128), launch(function, 129), launch(function, 0),
                         launch(function, 128, 232448 - 512), launch(function, 128, 232448)]
    blocks = ctypes.c_int()
    CUDA.cuOccupancyMaxActiveBlocksPerMultiprocessor(ctypes.byref(blocks), function, 128, 0)
    found["blocks"] = blocks.value
    found["shared"] = [CUDA.cuFuncSetAttribute(function, DYNAMIC_SHARED, size)
                       for size in (200_000, 232_448)]
    found["no kernel"] = function_of(module, b"multiply")[0]
    variable, size = ctypes.c_uint64(), ctypes.c_size_t()
    found["variable"] = CUDA.cuModuleGetGlobal_v2(
        ctypes.byref(variable), ctypes.byref(size), module, b"table")
    found["bytes of the variable"] = size.value
    found["unload"] = [CUDA.cuModuleUnload(module), CUDA.cuModuleUnload(module)]
    found["launch after unload"] = launch(function, 128)
    return found


def library():
    handle, kernel, module = (ctypes.c_void_p() for _ in range(3))
    path = str(CUBINS / "sm_90.cubin").encode()
    loaded = CUDA.cuLibraryLoadFromFile(ctypes.byref(handle), path, None, None, 0, None, None, 0)
    CUDA.cuLibraryGetKernel(ctypes.byref(kernel), handle, b"with_stack")
    CUDA.cuLibraryGetModule(ctypes.byref(module), handle)
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    CUDA.cuFuncGetParamInfo(kernel, ctypes.c_size_t(1), ctypes.byref(offset), ctypes.byref(size))
    return [loaded, attributes_of(kernel), offset.value, size.value,
            function_of(module, b"with_stack")[1].value == kernel.value,
            CUDA.cuLibraryUnload(handle)]  # fmt: skip


def bad_images():
    module = ctypes.c_void_p()
    cubin = (CUBINS / "sm_90.cubin").read_bytes()
    far = bytearray(cubin)
    far[40:48] = (1 << 28).to_bytes(8, "little")  # its sections: far behind its end
    ptx = (CUBINS / "two_kernels.ptx").read_bytes()
    code, of_ptx = load(ptx)
    return {
        "no such file": CUDA.cuModuleLoad(ctypes.byref(module), b"/nowhere.cubin"),
        "another generation": load((CUBINS / "sm_80.cubin").read_bytes())[0],
        "cut": load(cubin[:63])[0],
        "sections far behind": load(bytes(far))[0],
        "text": load(b"no code at all")[0],
        "null": load(None)[0],
        "ptx": [code, function_of(of_ptx, b"with_stack")[0], function_of(of_ptx, b"multiply")[0]],
    }


def refusals():
    """The code and the sentence of functions that nothing stands in for."""
    driver = CUDA.cuMipmappedArrayCreate(None, None, 1)
    runtime = RUNTIME.cudaMallocArray(None, None, 1, 1, 0)
    RUNTIME.cudaGetErrorString.restype = ctypes.c_char_p
    value = ctypes.c_int()
    attribute = CUDA.cuDeviceGetAttribute(ctypes.byref(value), 9999, 0)
    sentence_of_attribute = text_of(CUDA.cuGetErrorString, attribute)
    return {
        "driver": [driver, attribute, sentence_of_attribute],
        "runtime": [runtime, RUNTIME.cudaGetLastError(), RUNTIME.cudaGetLastError()],
        "sentence": RUNTIME.cudaGetErrorString(801).decode(),
        "status": ctypes.CDLL("libcublasLt.so.13").cublasLtLoggerSetLevel(),
    }


def contexts():
    limit, version = ctypes.c_size_t(), ctypes.c_int()
    context, popped = ctypes.c_void_p(), ctypes.c_void_p()
    CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1)
    set_limit = CUDA.cuCtxSetLimit(1, ctypes.c_size_t(1 << 25))
    CUDA.cuCtxGetLimit(ctypes.byref(limit), 1)
    pushed = CUDA.cuCtxPushCurrent_v2(context)
    CUDA.cuCtxGetDevice(ctypes.byref(version))
    device = version.value
    CUDA.cuCtxPopCurrent_v2(ctypes.byref(popped))
    CUDA.cuCtxGetDevice(ctypes.byref(version))
    major, minor = ctypes.c_int(), ctypes.c_int()
    CUDA.cuDeviceComputeCapability(ctypes.byref(major), ctypes.byref(minor), 0)
    return [set_limit, limit.value, pushed, device, popped.value == context.value, version.value,
            CUDA.cuCtxPopCurrent_v2(None), major.value, minor.value]  # fmt: skip


def speeds():
    def attribute(number):
        value = ctypes.c_int()
        CUDA.cuDeviceGetAttribute(ctypes.byref(value), number, 0)
        return value.value

    return [attribute(number) for number in (13, 36, 37)]


def managed_memory():
    """Codes of a managed allocation's life, its kind, and what it took of the device."""

    def free_bytes():
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        RUNTIME.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
        return free.value

    before = free_bytes()
    address, flag, on_device = ctypes.c_void_p(), ctypes.c_bool(), ctypes.c_uint64()
    size = ctypes.c_size_t(1 << 40)
    made = RUNTIME.cudaMallocManaged(ctypes.byref(address), size, 1)
    CUDA.cuPointerGetAttribute(ctypes.byref(flag), 8, address)
    CUDA.cuPointerGetAttribute(ctypes.byref(on_device), 3, address)
    location = ctypes.c_uint64(1)  # {type, id}, by value
    prefetched = RUNTIME.cudaMemPrefetchAsync(address, size, location, 0, None)
    ctypes.memset(address.value, 7, 8)
    taken = before - free_bytes()
    return [made, flag.value, on_device.value == address.value, prefetched, taken,
            RUNTIME.cudaFree(address),
            RUNTIME.cudaMemPrefetchAsync(address, size, location, 0, None)]  # fmt: skip


def times():
    """Milliseconds between events: of nothing, of a kernel, of a copy; the last two again."""
    function = function_of(load((CUBINS / "sm_90.cubin").read_bytes())[1], b"with_stack")[1]
    target = ctypes.c_void_p()
    RUNTIME.cudaMalloc(ctypes.byref(target), ctypes.c_size_t(1 << 30))

    def elapsed(work):
        start, end, milliseconds = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        for event in (start, end):
            RUNTIME.cudaEventCreate(ctypes.byref(event))
        RUNTIME.cudaEventRecord(start, None)
        work()
        RUNTIME.cudaEventRecord(end, None)
        RUNTIME.cudaEventSynchronize(end)
        RUNTIME.cudaEventElapsedTime(ctypes.byref(milliseconds), start, end)
        return milliseconds.value

    def run():
        launch(function, 32)

    def fill():
        RUNTIME.cudaMemsetAsync(target, 0, ctypes.c_size_t(1 << 30), None)

    def on_another_stream():
        stream, event = ctypes.c_void_p(), ctypes.c_void_p()
        RUNTIME.cudaStreamCreate(ctypes.byref(stream))
        RUNTIME.cudaEventCreate(ctypes.byref(event))
        for _ in range(3):
            CUDA.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, None, None)
        RUNTIME.cudaEventRecord(event, stream)
        RUNTIME.cudaStreamWaitEvent(None, event, 0)

    works = (lambda: None, run, fill, run, fill, on_another_stream)
    return [elapsed(work) for work in works]


RUNTIME.cudaSetDevice(0)
print(json.dumps({
    "kernels": kernels(),
    "library": library(),
    "bad images": bad_images(),
    "refusals": refusals(),
    "contexts": contexts(),
    "speeds": speeds(),
    "managed": managed_memory(),
    "times": times(),
}))  # fmt: skip
