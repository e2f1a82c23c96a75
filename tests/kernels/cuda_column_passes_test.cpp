// Goal: the CUDA passes with sums of columns equal the double-precision reference, with packs and
// one element at a time.

#include "tests/kernels/column_passes_cases.h"
#include "tests/kernels/cuda_kernels.h"

namespace kernels {
namespace {

template <typename T>
class CudaColumnPasses : public test::CudaKernels<T> {};
TYPED_TEST_SUITE(CudaColumnPasses, test::CudaTypes);

TYPED_TEST(CudaColumnPasses, EqualTheReferenceAtEveryAddress) {
    for (const size_t shift : {0, 1}) {
        SCOPED_TRACE(shift);
        const test::Shift shifted(shift, shift, shift);
        test::check_all_column_passes<test::OnDevice, TypeParam>();
    }
}

}  // namespace
}  // namespace kernels
