// The reader of cubins, on what ptxas made of two_kernels.ptx, and on damaged copies of it. What
// ptxas said of the kernels is written in that file.
#include "profiler/virtual_gpu/cubin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

namespace profiler::virtual_gpu {
namespace {

using Bytes = std::vector<std::byte>;

Bytes cubin_for(int capability) {
    const std::string name = "/cubins/sm_" + std::to_string(capability) + ".cubin";
    std::ifstream file(TEMPOSCOPE_VIRTUAL_GPU_TESTS + name, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

const CubinKernel* find(const Cubin& cubin, std::string_view name) {
    const auto found = std::ranges::find(cubin.kernels, name, &CubinKernel::name);
    return found == cubin.kernels.end() ? nullptr : &*found;
}

struct Expected {
    int capability = 0;
    int registers = 0;  // of add_neighbour
};
constexpr Expected kExpected[] = {{80, 12}, {90, 14}, {100, 14}};

TEST(Cubins, HaveWhatPtxasSaysOfTheirKernels) {
    for (const auto& [capability, registers] : kExpected) {
        SCOPED_TRACE(capability);
        const auto cubin = read_cubin(cubin_for(capability));
        ASSERT_TRUE(cubin);
        EXPECT_EQ(cubin->capability, capability);
        ASSERT_EQ(cubin->kernels.size(), 2U);
        const CubinKernel* const add = find(*cubin, "add_neighbour");
        ASSERT_NE(add, nullptr);
        EXPECT_EQ(add->resources.registers, registers);
        EXPECT_EQ(add->resources.shared_bytes, 512);
        EXPECT_EQ(add->resources.local_bytes, 0);
        EXPECT_EQ(add->resources.max_threads, 128);
        const CubinKernel* const with_stack = find(*cubin, "with_stack");
        ASSERT_NE(with_stack, nullptr);
        EXPECT_EQ(with_stack->resources.registers, 8);
        EXPECT_EQ(with_stack->resources.shared_bytes, 0);
        EXPECT_EQ(with_stack->resources.local_bytes, 400);
        EXPECT_EQ(with_stack->resources.max_threads, 0);
    }
}

TEST(Cubins, HaveParametersAndVariables) {
    const auto cubin = read_cubin(cubin_for(90));
    ASSERT_TRUE(cubin);
    const CubinKernel* const add = find(*cubin, "add_neighbour");
    ASSERT_NE(add, nullptr);
    ASSERT_EQ(add->parameters.size(), 3U);
    EXPECT_EQ(add->parameters[1].offset, 8U);
    EXPECT_EQ(add->parameters[1].size, 8U);
    EXPECT_TRUE(add->parameters[1].is_pointer);
    EXPECT_EQ(add->parameters[2].offset, 16U);
    EXPECT_EQ(add->parameters[2].size, 4U);
    EXPECT_FALSE(add->parameters[2].is_pointer);
    ASSERT_EQ(cubin->variables.size(), 1U);
    EXPECT_EQ(cubin->variables[0].name, "table");
    EXPECT_EQ(cubin->variables[0].size_bytes, 64U);
}

TEST(Cubins, SayThemselvesHowLongTheyAre) {
    for (const auto& [capability, registers] : kExpected) {
        const Bytes bytes = cubin_for(capability);
        const auto tables = cubin_bytes(std::span(bytes).first(64));
        ASSERT_TRUE(tables);
        EXPECT_LE(*tables, bytes.size());
        EXPECT_EQ(cubin_bytes(bytes), bytes.size());
    }
}

TEST(Cubins, OtherFilesAreNone) {
    EXPECT_FALSE(cubin_bytes({}));
    EXPECT_FALSE(read_cubin({}));
    const std::string ptx = ".version 8.6\n.target sm_90\n" + std::string(100, ' ');
    EXPECT_FALSE(read_cubin(std::as_bytes(std::span(ptx))));
    std::ifstream program("/proc/self/exe", std::ios::binary);  // ELF of another machine
    std::string own(4096, '\0');
    program.read(own.data(), static_cast<std::streamsize>(own.size()));
    EXPECT_FALSE(read_cubin(std::as_bytes(std::span(own))));
}

TEST(Cubins, ThatEndTooEarlyAreRefused) {
    const Bytes bytes = cubin_for(90);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_FALSE(read_cubin(std::span(bytes).first(size))) << size;
    }
}

/// Offset and size of fields of the ELF header.
TEST(Cubins, DamagedHeadersAreRefused) {
    constexpr std::size_t kSectionTable = 40, kSectionSize = 58, kNumSections = 60, kNames = 62;
    const auto with = [](std::size_t offset, auto value) {
        Bytes bytes = cubin_for(90);
        std::memcpy(&bytes[offset], &value, sizeof value);
        return bytes;
    };
    EXPECT_FALSE(read_cubin(with(kSectionTable, ~uint64_t{0})));
    EXPECT_FALSE(cubin_bytes(with(kSectionTable, ~uint64_t{0} - 64)));
    EXPECT_FALSE(read_cubin(with(kSectionTable, uint64_t{1} << 40)));
    EXPECT_FALSE(read_cubin(with(kSectionSize, uint16_t{1})));
    EXPECT_FALSE(read_cubin(with(kNumSections, uint16_t{0})));
    EXPECT_FALSE(read_cubin(with(kNumSections, uint16_t{0xffff})));
    EXPECT_FALSE(read_cubin(with(kNames, uint16_t{0xfffe})));
}

TEST(Cubins, AnyDamageIsReadToAnEnd) {
    std::mt19937 random(1);
    const Bytes bytes = cubin_for(90);
    for (int i = 0; i < 2000; ++i) {
        Bytes damaged = bytes;
        for (int count = 0; count < 8; ++count) {
            damaged[random() % damaged.size()] = static_cast<std::byte>(random());
        }
        const auto cubin = read_cubin(damaged);
        if (!cubin) continue;
        for (const CubinKernel& kernel : cubin->kernels) {
            EXPECT_GE(kernel.resources.registers, 0);
            EXPECT_LE(kernel.resources.registers, 255);
            EXPECT_LE(kernel.resources.max_threads, 1024);
            EXPECT_GE(kernel.resources.shared_bytes, 0);
        }
    }
}

}  // namespace
}  // namespace profiler::virtual_gpu
