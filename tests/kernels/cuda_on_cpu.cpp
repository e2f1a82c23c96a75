#include "tests/kernels/cuda_on_cpu.h"

#include <setjmp.h>
#include <ucontext.h>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

namespace cuda_on_cpu {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr size_t kWarp = 32;

enum class State { kReady, kAtBarrier, kInShuffle, kDone };

/// One thread of the block. It starts on a context of its own. After that, jumps enter and leave
/// it, which, unlike swapcontext, make no system call.
struct Fiber {
    ucontext_t context;
    jmp_buf resume;
    std::unique_ptr<char[]> stack;  // none: not started yet
    State state = State::kReady;
    uint3 index = {};
    uint64_t given[2] = {};  // in this shuffle and in the last, which others may still read
    unsigned shuffles = 0;
};

/// One block of threads, in groups of 32 along x, then y (a row of threads is whole warps here).
struct Block {
    std::vector<Fiber> fibers;  // as many as the largest block so far needed; blocks reuse them
    size_t threads = 0;
    dim3 grid, size;
    uint3 index = {};
    jmp_buf scheduler;
    Fiber* running = nullptr;
    const std::function<void()>* body = nullptr;
};

Block block;
unsigned last_blocks = 0;
bool last_block_first = false;
int multiprocessor_count = 108;

void leave_as(State state) {
    Fiber* self = block.running;
    self->state = state;
    if (_setjmp(self->resume) == 0) _longjmp(block.scheduler, 1);
}

void run_fiber() {
    for (;;) {
        (*block.body)();
        leave_as(State::kDone);
    }
}

void enter(Fiber& fiber) {
    block.running = &fiber;
    if (_setjmp(block.scheduler) != 0) return;
    if (fiber.stack) _longjmp(fiber.resume, 1);
    fiber.stack = std::make_unique<char[]>(kStackBytes);
    getcontext(&fiber.context);
    fiber.context.uc_stack = {.ss_sp = fiber.stack.get(), .ss_flags = 0, .ss_size = kStackBytes};
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, run_fiber, 0);
    setcontext(&fiber.context);
}

bool all_in(State state, size_t first, size_t last) {
    for (size_t t = first; t < last; ++t) {
        if (block.fibers[t].state != state) return false;
    }
    return true;
}

void release(size_t first, size_t last) {
    for (size_t t = first; t < last; ++t) block.fibers[t].state = State::kReady;
}

/// Runs the warp's threads until all are done or wait for other warps. False if none could run.
bool run_warp(size_t first) {
    bool progress = false;
    do {
        for (size_t t = first; t < first + kWarp; ++t) {
            if (block.fibers[t].state != State::kReady) continue;
            enter(block.fibers[t]);
            progress = true;
        }
        if (!all_in(State::kInShuffle, first, first + kWarp)) return progress;
        release(first, first + kWarp);
    } while (true);
}

void run_block(const char* kernel, const uint3& index) {
    block.index = index;
    for (size_t t = 0; t < block.threads; ++t) {
        const auto x = static_cast<unsigned>(t);
        block.fibers[t].index = {x % block.size.x, x / block.size.x, 0};
        block.fibers[t].state = State::kReady;
    }
    while (!all_in(State::kDone, 0, block.threads)) {
        bool progress = false;
        for (size_t warp = 0; warp < block.threads; warp += kWarp) {
            progress = run_warp(warp) || progress;
        }
        if (all_in(State::kAtBarrier, 0, block.threads)) release(0, block.threads);
        if (progress) continue;
        block.fibers.clear();  // they stopped in the middle of the kernel
        throw std::runtime_error(std::string(kernel) + ": block " + std::to_string(index.x) +
                                 " waits for threads that never come");
    }
}

}  // namespace

void run(const char* kernel, dim3 grid, dim3 size, const std::function<void()>& thread) {
    if (size.x % kWarp != 0 || size.z != 1 || grid.y != 1 || grid.z != 1) {
        throw std::runtime_error(std::string(kernel) + ": blocks of whole warps in x, grids in x");
    }
    block.grid = grid;
    block.size = size;
    block.threads = size_t{size.x} * size.y;
    block.body = &thread;
    if (block.fibers.size() < block.threads) block.fibers = std::vector<Fiber>(block.threads);
    const unsigned first = last_blocks == 0 || grid.x < last_blocks ? 0 : grid.x - last_blocks;
    for (unsigned x = first; x < grid.x; ++x) {
        run_block(kernel, {last_block_first ? grid.x - 1 - (x - first) : x, 0, 0});
    }
}

void set_multiprocessor_count(int count) { multiprocessor_count = count; }
void run_backwards(bool backwards) { last_block_first = backwards; }
void run_last_blocks_only(unsigned blocks) { last_blocks = blocks; }

uint3 thread_index() { return block.running->index; }
uint3 block_index() { return block.index; }
dim3 block_size() { return block.size; }
dim3 grid_size() { return block.grid; }

void wait_for_block() { leave_as(State::kAtBarrier); }

uint64_t exchange_in_warp(uint64_t bits, int source) {
    Fiber* self = block.running;
    const unsigned parity = self->shuffles++ % 2;
    self->given[parity] = bits;
    leave_as(State::kInShuffle);
    const auto first = static_cast<size_t>(self - block.fibers.data()) / kWarp * kWarp;
    return block.fibers[first + static_cast<size_t>(source)].given[parity];
}

}  // namespace cuda_on_cpu

// --- the few calls of the CUDA runtime that the tests make: memory is the machine's own ----------

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t size) {
    *pointer = std::aligned_alloc(256, (size + 255) / 256 * 256);
    return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
    std::free(pointer);
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind /*kind*/) {
    std::memcpy(to, from, size);
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
    if (attribute != cudaDevAttrMultiProcessorCount) return cudaErrorInvalidValue;
    *value = cuda_on_cpu::multiprocessor_count;
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t /*stream*/) {
    std::memset(to, value, size);
    return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t /*error*/) { return "no error: kernels run on the CPU"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
    *stream = nullptr;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) { return cudaSuccess; }

}  // extern "C"
