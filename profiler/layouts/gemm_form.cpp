#include "profiler/layouts/gemm_form.h"

#include <algorithm>

namespace profiler {
namespace {

/// Dimensions that act as one: its size, and its stride in each operand (0 where it is missing).
struct Merged {
    int64_t size = 1;
    int64_t a = 0, b = 0, c = 0;
};

class FormFinder {
public:
    FormFinder(const ContractionOrders& orders, const DimensionSizes& sizes)
        : orders_(orders), sizes_(sizes) {
        for (const char dimension : orders.a) {
            const bool in_b = orders.b.find(dimension) != orders.b.npos;
            const bool in_c = orders.c.find(dimension) != orders.c.npos;
            (in_b ? (in_c ? shared_ : sums_) : rows_).push_back(dimension);
        }
        for (const char dimension : orders.b) {
            if (orders.a.find(dimension) == orders.a.npos) columns_.push_back(dimension);
        }
    }

    std::vector<GemmForm> find() const {
        std::vector<GemmForm> forms;
        const auto sums = merged(sums_);
        if (!sums) return forms;
        // Each subset of rows and of columns may number matrices instead.
        for (unsigned row_bits = 0; row_bits + 1U < (1U << rows_.size()); ++row_bits) {
            for (unsigned column_bits = 0; column_bits + 1U < (1U << columns_.size());
                 ++column_bits) {
                add(row_bits, column_bits, *sums, forms);
            }
        }
        std::ranges::stable_sort(forms, {}, &GemmForm::batch);
        return forms;
    }

private:
    void add(unsigned row_bits, unsigned column_bits, const Merged& sums,
             std::vector<GemmForm>& forms) const {
        std::string rows, columns, batch = shared_;
        split(rows_, row_bits, rows, batch);
        split(columns_, column_bits, columns, batch);
        const std::string splitting = batch.substr(shared_.size());
        if (element_count(splitting, sizes_) > kMostSplitMatrices) return;
        const auto row = merged(rows), column = merged(columns), number = merged(batch);
        if (!row || !column || !number) return;
        const GemmForm form{.batch = number->size,
                            .m = row->size,
                            .n = column->size,
                            .k = sums.size,
                            .a = {number->a, row->a, sums.a},
                            .b = {number->b, sums.b, column->b},
                            .c = {number->c, row->c, column->c}};
        if (is_dense(form.a) && is_dense(form.b) && is_dense(form.c)) forms.push_back(form);
    }

    /// A BLAS takes matrices whose rows or columns are dense.
    static bool is_dense(const GemmOperand& operand) {
        return operand.row_stride == 1 || operand.column_stride == 1;
    }

    static void split(const std::string& dimensions, unsigned bits, std::string& kept,
                      std::string& batch) {
        for (std::size_t i = 0; i < dimensions.size(); ++i) {
            ((bits >> i & 1U) != 0 ? batch : kept).push_back(dimensions[i]);
        }
    }

    /// The dimensions as one, from the outermost in; empty if some operand does not hold them so.
    std::optional<Merged> merged(std::string dimensions) const {
        if (dimensions.empty()) return Merged{};
        const auto stride = [&](char dimension, std::string_view order) {
            return stride_of(dimension, order, sizes_);
        };
        std::ranges::sort(dimensions, [&](char x, char y) {
            const auto key = [&](char d) {
                return std::max({stride(d, orders_.a), stride(d, orders_.b), stride(d, orders_.c)});
            };
            return key(x) > key(y);
        });
        for (std::size_t i = 0; i + 1 < dimensions.size(); ++i) {
            const char outer = dimensions[i], inner = dimensions[i + 1];
            for (const std::string_view order : {orders_.a, orders_.b, orders_.c}) {
                if (stride(outer, order) != sizes_[inner] * stride(inner, order)) {
                    return std::nullopt;
                }
            }
        }
        const char innermost = dimensions.back();
        return Merged{.size = element_count(dimensions, sizes_),
                      .a = stride(innermost, orders_.a),
                      .b = stride(innermost, orders_.b),
                      .c = stride(innermost, orders_.c)};
    }

    ContractionOrders orders_;
    const DimensionSizes& sizes_;
    std::string shared_, rows_, columns_, sums_;
};

}  // namespace

int64_t element_count(std::string_view dimensions, const DimensionSizes& sizes) {
    int64_t count = 1;
    for (const char dimension : dimensions) count *= sizes[dimension];
    return count;
}

int64_t stride_of(char dimension, std::string_view order, const DimensionSizes& sizes) {
    const std::size_t place = order.find(dimension);
    if (place == order.npos) return 0;
    return element_count(order.substr(place + 1), sizes);
}

std::vector<std::string> all_orders(std::string dimensions) {
    std::vector<std::string> orders;
    std::ranges::sort(dimensions);
    do {
        orders.push_back(dimensions);
    } while (std::next_permutation(dimensions.begin(), dimensions.end()));
    return orders;
}

std::vector<GemmForm> gemm_forms(const ContractionOrders& orders, const DimensionSizes& sizes) {
    return FormFinder(orders, sizes).find();
}

}  // namespace profiler
