#include "profiler/virtual_gpu/library_call.h"

#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/blas_call.h"
#include "profiler/virtual_gpu/device_memory.h"
#include "profiler/virtual_gpu/value_copies.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace profiler::virtual_gpu {
namespace {

/// A handle, a plan, a descriptor or a sparse matrix.
struct Object {
    cudaStream_t stream = nullptr;
    int64_t rows = 0, columns = 0, entries = 0;  // of a sparse matrix
};

class Objects {
public:
    static Objects& instance() {
        static auto* const objects = new Objects;
        return *objects;
    }
    int64_t add(const Object& object) {
        const std::lock_guard lock(mutex_);
        objects_[++last_] = object;
        return last_;
    }
    void erase(int64_t number) {
        const std::lock_guard lock(mutex_);
        objects_.erase(number);
    }
    /// One that nobody made is like a new one.
    Object& operator[](int64_t number) {
        const std::lock_guard lock(mutex_);
        return objects_[number];
    }

private:
    std::mutex mutex_;
    std::unordered_map<int64_t, Object> objects_;  // its references stay valid
    int64_t last_ = 0;
};

/// Of a workspace that is asked for in bytes.
constexpr int64_t kSparseWorkspaceBytes = 256;
constexpr int64_t kBlockColumns = 64;

class LibraryCall {
public:
    LibraryCall(const char* name, std::span<const Argument> arguments)
        : name_(name), function_(name), arguments_(arguments) {}

    void run() {
        if (is_called({"Create", "create"}) && !is_called({"CreateIdentityPermutation"})) {
            return make_object();
        }
        if (is_called({"Destroy", "destroy"})) {
            Objects::instance().erase(arguments_.front().number);
        } else if (is_called({"SetStream"})) {
            owner().stream = static_cast<cudaStream_t>(arguments_.back().pointer);
        } else if (is_called({"bufferSize", "MakePlan", "GetWorkspace", "CompressedSize"})) {
            set_sizes();
        } else if (is_called({"SpMatGetSize"})) {
            tell_size_of_matrix();
        } else if (!is_called({"Set"})) {
            compute();
        }
    }

private:
    bool is_called(std::initializer_list<std::string_view> parts) const {
        return std::ranges::any_of(
            parts, [&](std::string_view part) { return function_.find(part) != function_.npos; });
    }

    /// The first argument of one of these names; null: there is none.
    const Argument* find(std::initializer_list<std::string_view> names) const {
        for (const Argument& argument : arguments_) {
            if (std::ranges::find(names, argument.name) != names.end()) return &argument;
        }
        return nullptr;
    }
    int64_t number(std::initializer_list<std::string_view> names, int64_t otherwise) const {
        const Argument* const found = find(names);
        return found == nullptr ? otherwise : found->number;
    }

    Object& owner() const { return Objects::instance()[arguments_.front().number]; }

    /// The first argument takes it: a number of cuFFT, else an opaque pointer.
    void make_object() const {
        const int64_t object = Objects::instance().add({.rows = number({"rows"}, 0),
                                                        .columns = number({"cols"}, 0),
                                                        .entries = number({"nnz"}, 0)});
        const Argument& target = arguments_.front();
        const std::size_t bytes = target.integer_bytes > 0 ? target.integer_bytes : sizeof(void*);
        std::memcpy(target.pointer, &object, bytes);
    }

    static void set(const Argument& target, int64_t value) {
        if (target.pointer != nullptr) std::memcpy(target.pointer, &value, target.integer_bytes);
    }

    /// Bytes or, in the older functions of cuSOLVER, elements.
    void set_sizes() const {
        constexpr std::array kNames = {"lwork", "Lwork", "work", "buffer", "Buffer", "workspace"};
        for (const Argument& argument : arguments_) {
            const bool is_size = std::ranges::any_of(kNames, [&](std::string_view name) {
                return argument.name.find(name) != argument.name.npos;
            });
            if (!is_size || argument.integer_bytes == 0 || argument.is_constant) continue;
            const bool is_of_host = argument.name.ends_with("OnHost");
            set(argument, is_of_host ? 0 : workspace());
        }
    }

    int64_t workspace() const {
        if (is_called({"cufft"})) return bytes_of_signal();
        return is_called({"cusolver"}) ? workspace_of_solver() : kSparseWorkspaceBytes;
    }

    /// A copy of the signal.
    int64_t bytes_of_signal() const {
        const Argument& sizes = *find({"n"});
        int64_t elements = number({"batch"}, 1);
        for (int64_t i = 0; i < number({"rank"}, 1); ++i) {
            elements *= static_cast<const long long*>(sizes.pointer)[i];
        }
        return elements * bytes_of(find({"executiontype"})->number);
    }

    static int64_t bytes_of(int64_t type) {
        switch (static_cast<cudaDataType_t>(type)) {
            case CUDA_R_16F:
            case CUDA_R_16BF:
                return 2;
            case CUDA_C_16F:
            case CUDA_C_16BF:
            case CUDA_R_32F:
                return 4;
            case CUDA_C_64F:
                return 16;
            default:
                return 8;
        }
    }

    /// Factors of blocks of columns; for eigenvalues and singular values three matrices.
    int64_t workspace_of_solver() const {
        const int64_t n = number({"n"}, 1);
        const int64_t m = std::max(number({"m"}, n), n);
        const bool is_spectral = is_called({"gesvd", "syev", "heev", "geev"});
        const int64_t elements = is_spectral ? 3 * m * n : kBlockColumns * m;
        const Argument* const type = find({"dataTypeA"});
        return elements * number({"batchSize"}, 1) * (type ? bytes_of(type->number) : 1);
    }

    void tell_size_of_matrix() const {
        const Object& matrix = owner();
        set(*find({"rows"}), matrix.rows);
        set(*find({"cols"}), matrix.columns);
        set(*find({"nnz"}), matrix.entries);
    }

    cudaStream_t stream() const {
        void* const handle = arguments_.front().pointer;
        return is_called({"cublas"}) ? stream_of(static_cast<cublasHandle_t>(handle))
                                     : owner().stream;
    }

    void compute() const {
        submit_blas(name_, stream());
        tell_success();
        if (const Argument* const position = find({"position"})) set(*position, -1);  // no zero
        count_entries();
    }

    /// On the device a zero for each matrix, on the host one for all.
    void tell_success() const {
        const auto num_matrices = static_cast<std::size_t>(number({"batchSize"}, 1));
        for (const Argument& argument : arguments_) {
            const bool is_info = argument.name == "info" || argument.name == "infoArray" ||
                                 argument.name.starts_with("devInfo") || argument.name == "d_info";
            if (!is_info || argument.pointer == nullptr) continue;
            if (Memories::instance().device_of(argument.pointer) >= 0) {
                fill_on_device(argument.pointer, std::array{std::byte{0}},
                               num_matrices * sizeof(int));
            } else {
                set(argument, 0);
            }
        }
    }

    /// As if no two entries of the operands met.
    void count_entries() const {
        Objects& objects = Objects::instance();
        if (is_called({"SpGEMM_compute", "SpGEMM_workEstimation"})) {
            for (const Argument& argument : arguments_) {
                if (argument.name.starts_with("bufferSize")) set(argument, kSparseWorkspaceBytes);
            }
            objects[find({"matC"})->number].entries = std::max(
                objects[find({"matA"})->number].entries, objects[find({"matB"})->number].entries);
        }
        if (const Argument* const total = find({"nnzTotalDevHostPtr"})) {
            set(*total, number({"nnzA"}, 0) + number({"nnzB"}, 0));
        }
    }

    const char* const name_;  // lives as long as the process
    const std::string_view function_;
    const std::span<const Argument> arguments_;
};

}  // namespace

void call_library(const char* function, std::span<const Argument> arguments) {
    LibraryCall(function, arguments).run();
}

}  // namespace profiler::virtual_gpu
