#pragma once

#include <cstddef>
#include <span>

/// What copies and fills do to the values in device memory. `size` is in bytes.
namespace profiler::virtual_gpu {

/// Unknown bytes become zeros, and the listener of values.h hears of them.
void copy_to_host(void* target, const void* source, std::size_t size);
/// From the host. A copy of more than kMaxKeptCopyBytes is unknown.
void copy_to_device(const void* target, const void* source, std::size_t size);
void copy_on_devices(const void* target, const void* source, std::size_t size);
/// `pattern` repeats.
void fill_on_device(const void* target, std::span<const std::byte> pattern, std::size_t size);
/// A kernel wrote there.
void forget_on_device(const void* target, std::size_t size);

}  // namespace profiler::virtual_gpu
