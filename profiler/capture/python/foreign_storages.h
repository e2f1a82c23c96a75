#pragma once

#include "profiler/capture/recorded_allocator.h"

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <memory>
#include <unordered_map>

namespace profiler {

/// The blocks of an allocator, and storages that it did not make: of NumPy, of a mapped file, from
/// before it was installed. Those become known when a recording names them (`adopt`), with the
/// bytes of the storage.
class ForeignStorages final : public AllocationSource {
public:
    explicit ForeignStorages(RecordedAllocator& allocator) : allocator_(allocator) {}

    void start(AllocationListener& listener) override;
    void stop() override;
    Id<Allocation> allocation_of(const c10::StorageImpl& storage) const override;

    /// Records the storage of `tensor`, if nobody has. Not under the recorder's lock.
    void adopt(const at::Tensor& tensor);
    /// Records the frees of adopted storages that are gone. Torch does not tell when that happens.
    void release_freed();

    std::size_t num_adopted() const { return num_adopted_; }

private:
    using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
    struct Adopted {
        WeakStorage storage;  // keeps its address from being used again
        std::unique_ptr<BlockHeader> block;
    };

    RecordedAllocator& allocator_;
    AllocationListener* listener_ = nullptr;
    std::unordered_map<const c10::StorageImpl*, Adopted> adopted_;
    std::size_t num_adopted_ = 0;
};

}  // namespace profiler
