#include "kernels/reference/inplace_gelu_reference.h"

#include <cmath>
#include <numbers>

namespace kernels::reference {
namespace {

/// The x in [low, high] where `above` turns from false to true.
template <class Predicate>
long double bisect(long double low, long double high, const Predicate& above) {
    for (int i = 0; i < 75; ++i) {
        const long double middle = (low + high) / 2;
        (above(middle) ? high : low) = middle;
    }
    return (low + high) / 2;
}

/// Long double, since o - o_min loses half of the digits near x*.
long double gelu_long(GeluKind kind, long double x) {
    if (kind == GeluKind::kErf) return x * erfcl(-x / sqrtl(2.0L)) / 2;
    const long double scale = 2 * sqrtl(2 / std::numbers::pi_v<long double>);
    return x / (1 + expl(-scale * x * (1 + 0.044715L * x * x)));
}

long double gelu_derivative_long(GeluKind kind, long double x) {
    const long double pi = std::numbers::pi_v<long double>;
    if (kind == GeluKind::kErf) {
        return erfcl(-x / sqrtl(2.0L)) / 2 + x * expl(-x * x / 2) / sqrtl(2 * pi);
    }
    const long double scale = 2 * sqrtl(2 / pi);
    const long double e = expl(-scale * x * (1 + 0.044715L * x * x));
    const long double slope = scale * (1 + 3 * 0.044715L * x * x);
    return (1 + e + x * slope * e) / ((1 + e) * (1 + e));
}

long double minimum_x(GeluKind kind) {
    return bisect(-2, 0, [&](long double x) { return gelu_derivative_long(kind, x) > 0; });
}

}  // namespace

double gelu(GeluKind kind, double x) { return static_cast<double>(gelu_long(kind, x)); }

double gelu_derivative(GeluKind kind, double x) {
    return static_cast<double>(gelu_derivative_long(kind, x));
}

double gelu_minimum_x(GeluKind kind) { return static_cast<double>(minimum_x(kind)); }

double gelu_minimum(GeluKind kind) { return static_cast<double>(gelu_long(kind, minimum_x(kind))); }

double gelu_derivative_from_output(GeluKind kind, double o, bool right) {
    const long double x_min = minimum_x(kind);
    if (o <= gelu_long(kind, x_min)) return 0;
    if (!right && o >= 0) return 0;
    const auto right_of = [&](long double x) { return gelu_long(kind, x) > o; };
    const auto left_of = [&](long double x) { return gelu_long(kind, x) < o; };
    const long double x =
        right ? bisect(x_min, fmaxl(o, 0.0L) + 1, right_of) : bisect(-45, x_min, left_of);
    return static_cast<double>(gelu_derivative_long(kind, x));
}

}  // namespace kernels::reference
