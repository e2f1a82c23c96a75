#include "profiler/protocol/virtual_gpu_values.h"

#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/device_memory.h"
#include "profiler/virtual_gpu/streams.h"
#include "profiler/virtual_gpu/value_copies.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

namespace profiler::virtual_gpu {
namespace {

std::atomic<OnUnknownRead> on_unknown_read = nullptr;
std::atomic<uint64_t> num_writes = 0;
std::atomic<uint64_t> num_reads = 0;
std::atomic<bool> is_keeping = true;
thread_local std::optional<int64_t> expected;

std::span<std::byte> span_of(void* bytes, std::size_t size) {
    return {static_cast<std::byte*>(bytes), size};
}
std::span<const std::byte> span_of(const void* bytes, std::size_t size) {
    return {static_cast<const std::byte*>(bytes), size};
}

/// Returns use(contents) of the device that has the address; a value of that type for none.
template <typename Use>
auto with_contents(const void* address, const Use& use) {
    const int device = Memories::instance().device_of(address);
    using Result = decltype(use(std::declval<Contents&>()));
    if (device < 0) return Result();
    DeviceMemory& memory = Memories::instance()[device];
    const auto lock = memory.lock();
    return use(memory.contents());
}

bool read(const void* address, void* bytes, std::size_t size) {
    return with_contents(address, [&](const Contents& contents) {
        return contents.read(number_of(address), span_of(bytes, size));
    });
}

bool knows(const void* address, std::size_t size) {
    return with_contents(address, [&](const Contents& contents) {
        return contents.knows(number_of(address), size);
    });
}

void write(const void* address, const void* bytes, std::size_t size) {
    ++num_writes;
    if (!is_keeping) return;
    with_contents(address, [&](Contents& contents) {
        contents.write(number_of(address), span_of(bytes, size));
    });
}

void fill(const void* address, const void* pattern, std::size_t pattern_size, std::size_t size) {
    ++num_writes;
    if (!is_keeping) return;
    with_contents(address, [&](Contents& contents) {
        contents.fill(number_of(address), span_of(pattern, pattern_size), size);
    });
}

void forget_and_capture(const void* address, std::size_t size) {
    forget_on_device(address, size);
    add_captured_write(address, size);
}

void set_keeping(bool wanted) {
    is_keeping = wanted;
    if (wanted) return;
    for (std::size_t device = 0; device < machine().cards.size(); ++device) {
        DeviceMemory& memory = Memories::instance()[static_cast<int>(device)];
        const auto lock = memory.lock();
        memory.contents() = Contents();
    }
}

/// Verdicts, and the integers that ops size their results by: int, int64_t and size_t.
bool is_of_one_number(std::size_t size) {
    return size == sizeof(bool) || size == sizeof(int32_t) || size == sizeof(int64_t);
}

}  // namespace

void copy_to_host(void* target, const void* source, std::size_t size) {
    ++num_reads;
    if (expected && is_of_one_number(size)) {
        std::memcpy(target, &*expected, size);  // the low bytes come first
        return;
    }
    while (!read(source, target, size)) {
        const OnUnknownRead listener = on_unknown_read;
        if (listener == nullptr || !listener(source, size)) return;
    }
}

void copy_to_device(const void* target, const void* source, std::size_t size) {
    if (size > kMaxKeptCopyBytes) return forget_on_device(target, size);
    write(target, source, size);
}

void copy_on_devices(const void* target, const void* source, std::size_t size) {
    ++num_writes;
    if (!is_keeping) return;
    Memories& memories = Memories::instance();
    const int to = memories.device_of(target);
    const int from = memories.device_of(source);
    // In the order of the devices: another thread may copy the other way.
    const auto first = memories[std::min(to, from)].lock();
    const auto second =
        to == from ? std::unique_lock<std::mutex>() : memories[std::max(to, from)].lock();
    memories[to].contents().copy(memories[from].contents(), number_of(source), number_of(target),
                                 size);
}

void fill_on_device(const void* target, std::span<const std::byte> pattern, std::size_t size) {
    fill(target, pattern.data(), pattern.size(), size);
}

void forget_on_device(const void* target, std::size_t size) {
    with_contents(target, [&](Contents& contents) { contents.forget(number_of(target), size); });
}

VIRTUAL_GPU_API const Values* temposcope_virtual_gpu_values() {
    static constexpr Values kValues{
        .read = &read,
        .knows = &knows,
        .write = &write,
        .fill = &fill,
        .forget = &forget_and_capture,
        .num_writes = []() -> uint64_t { return num_writes; },
        .expect = [](int64_t value) { expected = value; },
        .expect_nothing = [] { expected.reset(); },
        .num_reads = []() -> uint64_t { return num_reads; },
        .set_keeping = &set_keeping,
        .captures = &captures,
        .set_on_unknown_read = [](OnUnknownRead listener) { on_unknown_read = listener; },
        .set_op_name = &name_refusals,
        .set_unlimited = &DeviceMemory::set_unlimited,
    };
    return &kValues;
}

}  // namespace profiler::virtual_gpu
