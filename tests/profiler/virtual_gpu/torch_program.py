"""Runs on a virtual GPU: prints one JSON object of what torch did. The test checks it."""

import json
import threading

import torch
from torch.nn.functional import scaled_dot_product_attention

DEVICE = torch.device("cuda")


def error_of(call):
    """The first line of what `call` raises, with its type."""
    try:
        call()
    except Exception as error:  # whatever torch makes of it
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return "no error"


def values():
    copied = torch.tensor([1, 2, 3], device=DEVICE)
    address = copied.data_ptr()
    before = copied.tolist()
    del copied
    reused = torch.empty(3, dtype=torch.int64, device=DEVICE)
    return {
        "copied": before,
        "filled": torch.full((), 65536.0, device=DEVICE).item(),
        "ones": torch.ones(3, dtype=torch.bfloat16, device=DEVICE).tolist(),
        "computed": (torch.ones(2, device=DEVICE) * 3).tolist(),
        "all": [
            (torch.randn(8, 16, device=DEVICE) > 0).all().item(),
            torch.ones(1 << 20, device=DEVICE).isfinite().all().item(),
            torch.randn(8, device=DEVICE).isnan().any().item(),
        ],
        "same_block": reused.data_ptr() == address,
        "reused": reused.tolist(),
    }


def training():
    model = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    scaler = torch.amp.GradScaler()
    for _ in range(2):
        with torch.autocast("cuda", torch.float16):
            loss = model(torch.randn(4, 16, 64, device=DEVICE)).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return torch.cuda.max_memory_allocated()


def attention(dtype):
    q = torch.randn(2, 4, 128, 64, device=DEVICE, dtype=dtype, requires_grad=True)
    scaled_dot_product_attention(q, q, q, dropout_p=0.1).sum().backward()


def graph():
    x = torch.zeros(1024, device=DEVICE)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = x * 2 + 1
    captured.replay()
    return list(y.shape)


def kernels():
    from torch.profiler import ProfilerActivity, profile

    a = torch.randn(32, 48, device=DEVICE)
    b = torch.randn(48, 16, device=DEVICE)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        (a @ b).relu()
    cuda = torch.autograd.DeviceType.CUDA
    return [event.name[:60] for event in profiler.events() if event.device_type == cuda]


def attention_kernels():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        attention(torch.bfloat16)
    cuda = torch.autograd.DeviceType.CUDA
    return [event.name for event in profiler.events() if event.device_type == cuda]


def copy_both_ways():
    """Two threads copy between two devices, each the other way."""
    tensors = [torch.zeros(1000, device=f"cuda:{device}") for device in range(2)]

    def copy(target):
        for _ in range(1000):
            tensors[target].copy_(tensors[1 - target])

    threads = [threading.Thread(target=copy, args=(target,), daemon=True) for target in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return any(thread.is_alive() for thread in threads)


def streams():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.ones(100, device=DEVICE)
    x.record_stream(torch.cuda.current_stream())
    side.synchronize()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    event.synchronize()
    return event.query()


print(
    json.dumps(
        {
            "name": torch.cuda.get_device_name(),
            "capability": list(torch.cuda.get_device_capability()),
            "torch": torch.__version__,
            "devices": torch.cuda.device_count(),
            "memory": list(torch.cuda.mem_get_info()),
            "values": values(),
            "training_peak": training(),
            "attention": [error_of(lambda: attention(t)) for t in (torch.float32, torch.bfloat16)],
            "attention_kernels": attention_kernels(),
            "deadlock": copy_both_ways(),
            "graph": graph(),
            "streams": streams(),
            "kernels": kernels(),
            "second_device": list(torch.ones(2, device="cuda:1").shape),
            "sorted": list(torch.randn(5000, device=DEVICE).sort()[0].shape),
            "pinned": torch.ones(4).pin_memory().to(DEVICE, non_blocking=True).tolist(),
            "out_of_memory": error_of(lambda: torch.empty(100 << 30, device=DEVICE)),
            "svd": error_of(lambda: torch.linalg.svd(torch.ones(2, 2, device=DEVICE))),
            "semi_structured": error_of(
                lambda: torch._cslt_compress(torch.eye(64, dtype=torch.float16, device=DEVICE))
            ),
            "fft": error_of(lambda: torch.fft.fft(torch.ones(2, 2, device=DEVICE))),
        }
    )
)
