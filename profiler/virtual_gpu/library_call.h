#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

/// Functions of cuSOLVER, cuFFT, cuSPARSE and, as far as it has none of its own, cuBLAS:
/// generate.py writes each function that torch calls, with the parameters of its header. The
/// function hands its arguments to call_library.
namespace profiler::virtual_gpu {

struct Argument {
    std::string_view name;          // as the header calls it
    int64_t number = 0;             // of an integer, an enumerator or a handle
    void* pointer = nullptr;        // of a pointer
    std::size_t integer_bytes = 0;  // of the integer that it points to; else 0
    bool is_constant = false;       // what it points to

    template <typename T>
    Argument(std::string_view name_of, const T& value) : name(name_of) {
        if constexpr (std::is_pointer_v<T>) {
            using Pointee = std::remove_pointer_t<T>;
            pointer = const_cast<void*>(static_cast<const void*>(value));
            number = reinterpret_cast<int64_t>(pointer);
            is_constant = std::is_const_v<Pointee>;
            if constexpr (std::is_integral_v<Pointee>) integer_bytes = sizeof(Pointee);
        } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
            number = static_cast<int64_t>(value);
        }
    }
};

/// Does what a training step sees of the function: its work on the handle's stream, objects, sizes
/// of workspaces, and that nothing failed.
void call_library(const char* function, std::span<const Argument> arguments);

}  // namespace profiler::virtual_gpu
