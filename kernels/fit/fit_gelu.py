#!/usr/bin/env python3
"""Makes kernels/inplace_gelu_constants.h and prints the error that each fit reaches.

    python3 kernels/fit/fit_gelu.py > kernels/inplace_gelu_constants.h      (needs mpmath)

Errors go to standard error and into the header. They are absolute, of the fit with its coefficients
rounded to float, evaluated exactly; the rounding of a float evaluation comes on top and is what
tests/kernels/inplace_gelu_test.cpp measures.

GELU has a minimum o_min at x*. The variables in which things are smooth, so that low degrees do:

  g(a) = -gelu(-a) = max(a, 0) - gelu(a)   in a = |x|          forward, both signs of x
  gelu'(x)                                 in s = sqrt(o - o_min), right of x*
  gelu'(x)                                 in s, negative left of x*, but singular where o -> 0
  gelu'(x) / o                             in v = sqrt(log2(o_min / o)), all of the left branch:
                                           v ~ s near x* and v ~ |x| in the tail
"""
import struct
import sys
import textwrap

import mpmath as mp

mp.mp.dps = 30

# s from where gelu' is 1: o = 6.07, where it differs from 1 by less than 3e-8.
BACKWARD_END = mp.mpf("2.4990234375")
LEFT_DEGREE = 5
# The same for 16-bit types: from o = 4.37 on, gelu' differs from 1 by less than 1.3e-4.
HALF_END = mp.mpf("2.1298828125")
# s of x*'s neighbourhood, for which one polynomial serves both branches, and v of o = -1.3e-10.
NEAR_LEFT, NEAR_RIGHT = mp.mpf(1) / 8, mp.mpf(3) / 2
LEFT_END = mp.mpf(11) / 2


class Erf:
    """gelu(x) = x Phi(x)."""
    name = "Erf"

    def f(self, x):
        return x * mp.erfc(-x / mp.sqrt(2)) / 2

    def df(self, x):
        return mp.erfc(-x / mp.sqrt(2)) / 2 + x * mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


class Tanh:
    """gelu(x) = x sigmoid(z(x)), z = 2 sqrt(2/pi) (x + 0.044715 x^3)."""
    name = "Tanh"
    k = 2 * mp.sqrt(2 / mp.pi)
    cubic = mp.mpf("0.044715")

    def f(self, x):
        return x / (1 + mp.exp(-self.k * (x + self.cubic * x**3)))

    def df(self, x):
        sigmoid = 1 / (1 + mp.exp(-self.k * (x + self.cubic * x**3)))
        return sigmoid + x * sigmoid * (1 - sigmoid) * self.k * (1 + 3 * self.cubic * x * x)


def to_float(value):
    return mp.mpf(struct.unpack("f", struct.pack("f", float(value)))[0])


def float_at_least(value):
    """The smallest float not below value (value < 0)."""
    bits = struct.unpack("I", struct.pack("f", float(value)))[0]
    candidates = [mp.mpf(struct.unpack("f", struct.pack("I", bits + i))[0]) for i in (1, 0, -1)]
    return min(c for c in candidates if c >= value)


def invert_right(gelu, s):
    return bisect(lambda x: gelu.f(x) - gelu.o_min > s * s, gelu.x_min, mp.mpf(8))


def invert_left(gelu, o):
    return bisect(lambda x: gelu.f(x) < o, mp.mpf(-60), gelu.x_min)


def bisect(above, low, high):
    for _ in range(90):
        middle = (low + high) / 2
        if above(middle):
            high = middle
        else:
            low = middle
    return (low + high) / 2


def chebyshev_nodes(a, b, count):
    middle, radius = (a + b) / 2, (b - a) / 2
    return [middle - radius * mp.cos(mp.pi * (i + mp.mpf(1) / 2) / count) for i in range(count)]


def fit(function, a, b, degree, centre, weight=None, rounds=6):
    """Coefficients in (t - centre), rounded to float, that nearly minimize max |weight * error|.

    Weighted least squares on Chebyshev nodes of [a, b], its weights multiplied by the error a few
    times (Lawson).
    """
    count = 4 * (degree + 1)
    t = chebyshev_nodes(a, b, count)
    y = [function(p) for p in t]
    w = [weight(p) if weight else mp.mpf(1) for p in t]
    basis = [[(p - centre)**k for p in t] for k in range(degree + 1)]
    emphasis = [mp.mpf(1)] * count
    best_error, best = mp.inf, None
    for _ in range(rounds):
        q = [emphasis[i] * w[i]**2 for i in range(count)]
        normal = mp.matrix(degree + 1, degree + 1)
        rhs = mp.matrix(degree + 1, 1)
        for j in range(degree + 1):
            rhs[j] = mp.fsum(q[i] * basis[j][i] * y[i] for i in range(count))
            for k in range(degree + 1):
                normal[j, k] = mp.fsum(q[i] * basis[j][i] * basis[k][i] for i in range(count))
        c = [to_float(v) for v in mp.lu_solve(normal, rhs)]
        values = [mp.fsum(c[k] * basis[k][i] for k in range(degree + 1)) for i in range(count)]
        errors = [abs(w[i] * (values[i] - y[i])) for i in range(count)]
        if max(errors) < best_error:
            best_error, best = max(errors), c
        total = mp.fsum(emphasis[i] * errors[i] for i in range(count))
        emphasis = [e * m / total * count + mp.mpf(10)**-9 for e, m in zip(emphasis, errors)]
    return best, best_error


def almost_exact_centre(function, near):
    """A float near `near` where the function is almost a float too (Gal's accurate tables).

    The constant term then has no rounding error, which near x* decides the error of the method.
    """
    ulp = mp.mpf(2)**-22
    best = None
    for i in range(-700, 700):
        c = to_float(near + i * ulp)
        value = function(c)
        miss = abs(value - to_float(value))
        if best is None or miss < best[0]:
            best = (miss, c)
    return best[1]


def number(value):
    text = "%.9g" % float(value)
    return text + ("f" if "." in text or "e" in text else ".0f")


def report(gelu, name, what, error):
    line = "%s %-14s %-58s %s" % (gelu.name, name, what, mp.nstr(error, 2))
    print(line, file=sys.stderr)
    return "    // %s: error %s\n" % (what, mp.nstr(error, 2))


def braces(values):
    return "{" + ", ".join(values) + "}"


def declare(kind, name, value):
    """A member of the fit, wrapped at 100 columns."""
    text = "static constexpr %s %s = %s;" % (kind, name, value)
    return textwrap.fill(text, 100, initial_indent=" " * 4, subsequent_indent=" " * 8) + "\n"


def emit_poly(gelu, name, what, function, a, b, degree, weight=None, centre=None, rounds=6):
    centre = to_float((a + b) / 2) if centre is None else centre
    c, error = fit(function, a, b, degree, centre, weight, rounds)
    value = braces([number(centre), braces(number(v) for v in c)])
    return report(gelu, name, what, error) + declare("Poly<%d>" % degree, name, value)


def emit_lanes(gelu, name, what, degree, pieces):
    """pieces: ((coefficients, error), centre) for each of the eight lanes."""
    fits = [p[0] for p in pieces]

    def row(values):
        return braces([number(v) for v in values] * 2)

    coefficients = braces(row(c[k] for c, _ in fits) for k in range(degree + 1))
    value = braces([row(p[1] for p in pieces), coefficients])
    text = report(gelu, name, what, max(e for _, e in fits))
    return text + declare("LaneTable<%d>" % degree, name, value)


def forward_lanes(gelu):
    def g(a):
        return -gelu.f(-a)

    pieces = []
    for i in range(1, 8):
        a = mp.mpf(i) / 2
        centre = almost_exact_centre(g, a + mp.mpf(1) / 4)
        pieces.append((fit(g, a, a + mp.mpf(1) / 2, 7, centre), centre))
    # The first piece has a factor a: gelu(0) is 0 and small x keep their relative precision.
    c, error = fit(lambda a: g(a) / a, mp.mpf("1e-6"), mp.mpf(1) / 2, 6, mp.mpf(0))
    pieces.insert(0, (([mp.mpf(0)] + c, error / 2), mp.mpf(0)))
    return emit_lanes(gelu, "kForward", "-gelu(-a) in a - centre, lane int(2 a), a < 4", 7, pieces)


def backward_lanes(gelu):
    def right(s):
        return gelu.df(invert_right(gelu, s))

    def left(s):
        return gelu.df(invert_left(gelu, gelu.o_min + s * s))

    half = mp.mpf(1) / 2
    pieces = {}
    for i in range(4):
        centre = to_float(i * half + half / 2)
        pieces[(i + 5) % 8] = (fit(right, i * half, (i + 1) * half, 7, centre), centre)
    # The last one is exactly 1 at its end, where s is held: gelu' is 1 from there on.
    c, error = fit(lambda s: (right(s) - 1) / (s - BACKWARD_END), 4 * half,
                   BACKWARD_END - mp.mpf("1e-6"), 6, BACKWARD_END,
                   weight=lambda s: BACKWARD_END - s)
    pieces[1] = (([mp.mpf(1)] + c, error), BACKWARD_END)
    limits = [-gelu.o_min, mp.mpf(1) / 8, mp.mpf(1) / 16, mp.mpf(1) / 32]
    for i, (high, low) in enumerate(zip(limits, limits[1:])):
        a, b = mp.sqrt(-high - gelu.o_min), mp.sqrt(-low - gelu.o_min)
        centre = to_float((a + b) / 2)
        pieces[4 - i] = (fit(left, a, b, 7, centre), centre)
    what = "gelu' in s - centre; lane int(2 s) + 5 right, the exponent of o left, mod 8"
    text = declare("float", "kBackwardEnd", number(BACKWARD_END))
    return text + emit_lanes(gelu, "kBackward", what, 7, [pieces[i] for i in range(8)])


def left_binades(gelu):
    """gelu' / o in |o| / 2^e on [1, 2): no logarithm until o is too small to matter often."""
    pieces = {}
    for e in range(-13, -5):
        def ratio(m, scale=mp.mpf(2)**e):
            o = -m * scale
            return gelu.df(invert_left(gelu, o)) / o

        centre = mp.mpf(3) / 2
        c, error = fit(ratio, mp.mpf(1), mp.mpf(2), LEFT_DEGREE, centre)
        pieces[(e + 127) % 8] = ((c, error * 2 * mp.mpf(2)**e), centre)
    what = "gelu' / o in |o| / 2^e - 1.5; lane e + 127 mod 8, e = -13..-6 (error times o)"
    return emit_lanes(gelu, "kLeftBinades", what, LEFT_DEGREE, [pieces[i] for i in range(8)])


def wide_pieces(gelu):
    def right(s):
        return gelu.df(invert_right(gelu, s))

    def either(s):
        return right(s) if s > 0 else gelu.df(invert_left(gelu, gelu.o_min + s * s))

    def left_o(v):
        return gelu.o_min * mp.mpf(2)**(-v * v)

    def left(v):
        return gelu.df(invert_left(gelu, left_o(v))) / left_o(v)

    def size(v):
        return abs(left_o(v))

    far_left = mp.sqrt(mp.log(gelu.o_min / (gelu.o_min + NEAR_LEFT**2), 2))
    text = emit_poly(gelu, "kNear", "gelu' in signed s, -1/8 < s < 1.5", either, -NEAR_LEFT,
                     NEAR_RIGHT, 11)
    text += emit_poly(gelu, "kRightFar", "gelu' in s, right of x*, 1.5 <= s < 2.5", right,
                      NEAR_RIGHT, mp.mpf(5) / 2, 11)
    what = "gelu' / o in v, left of x* from s = 1/8 on (error times o)"
    text += emit_poly(gelu, "kLeftFar", what, left, far_left, LEFT_END, 8, size)
    return text + pieces_16bit(gelu, right, left, size)


def pieces_16bit(gelu, right, left, size):
    """Both branches in one variable t on [0, HALF_END], where it is held. Where it is held on the
    right, the result is 1 within a third of fp16's half ulp, so a product with it rounds as the
    product with 1."""
    what = "gelu' in t = s, right of x*, 16-bit"
    text = declare("float", "kHalfEnd", number(HALF_END))
    text += emit_poly(gelu, "kRightHalf", what, right, mp.mpf(0), HALF_END, 12, rounds=14)
    stretch = LEFT_END / HALF_END
    what = "gelu' / o in t = v kHalfEnd / kLeftEnd, left of x*, 16-bit (error times o)"
    return text + emit_poly(gelu, "kLeftHalf", what, lambda t: left(t * stretch), mp.mpf(0),
                            HALF_END, 4, lambda t: size(t * stretch))


def emit_double(gelu, name, what, function, limit, degree):
    """Interpolation on [-limit, limit], coefficients in double."""
    t = chebyshev_nodes(-limit, limit, degree + 1)
    vandermonde = mp.matrix([[p**k for k in range(degree + 1)] for p in t])
    c = mp.lu_solve(vandermonde, mp.matrix([function(p) for p in t]))
    check = [limit * (mp.mpf(i) + mp.mpf("0.1")) / 10 for i in range(-10, 10)]
    error = max(abs(mp.polyval(list(c)[::-1], s) - function(s)) for s in check)
    value = braces([braces("%.17g" % v for v in c)])
    return report(gelu, name, what, error) + declare("Series<%d>" % degree, name, value)


def near_minimum_double(gelu):
    def derivative(s):
        o = gelu.o_min + s * s
        return gelu.df(invert_right(gelu, s) if s > 0 else invert_left(gelu, o))

    def curvature(d):
        return (gelu.f(gelu.x_min + d) - gelu.o_min) / (d * d)

    what = "gelu' in signed s, |s| < 0.02"
    text = emit_double(gelu, "kBackwardDouble", what, derivative, mp.mpf("0.02"), 11)
    what = "(gelu - o_min) / d^2 in d = x - x*, |d| < 1/32"
    return text + emit_double(gelu, "kForwardDouble", what, curvature, mp.mpf(1) / 32, 9)


def forward_near_minimum(gelu):
    def curvature(d):
        return (gelu.f(gelu.x_min + d) - gelu.o_min) / (d * d)

    def square(d):
        return d * d

    limit, what = mp.mpf(1) / 4, "(gelu - o_min) / d^2 in d = x - x*, |d| < 1/4 (error times d^2)"
    return emit_poly(gelu, "kNearMinimum", what, curvature, -limit, limit, 6, square, mp.mpf(0))


def erf_tail():
    def ratio(w):
        a = 1 / mp.sqrt(w)
        return a * mp.erfc(a / mp.sqrt(2)) / 2 * mp.exp(a * a / 2)

    what = "-gelu(-a) exp(a^2/2) in 1/a^2, a >= 4"
    return emit_poly(Erf(), "kTail", what, ratio, mp.mpf(1) / 225, mp.mpf(1) / 16, 5)


def mills():
    """Phi(-a) exp(a^2/2) in t = 1 / (1 + 0.3 a), for 16-bit types and for float: smooth for all
    a >= 0, and small errors of it are small relative to Phi(-a) too."""
    slope = to_float(mp.mpf("0.3"))

    def ratio(t):
        a = (1 / t - 1) / slope
        return mp.erfc(a / mp.sqrt(2)) / 2 * mp.exp(a * a / 2)

    what = "Phi(-a) exp(a^2/2) in 1 / (1 + kMillsSlope a), a < 14 (relative error)"
    text = declare("float", "kMillsSlope", number(slope))
    for name, degree in (("kMillsHalf", 6), ("kMillsFloat", 8)):
        text += emit_poly(Erf(), name, what, ratio, 1 / (1 + 14 * slope), mp.mpf(1), degree,
                          lambda t: 1 / ratio(t), mp.mpf(0))
    return text


def emit_kind(gelu):
    gelu.x_min = mp.findroot(gelu.df, mp.mpf("-0.752"))
    gelu.o_min = gelu.f(gelu.x_min)
    x_double, o_double = mp.mpf(float(gelu.x_min)), mp.mpf(float(gelu.o_min))
    x_hi, o_hi = to_float(gelu.x_min), to_float(gelu.o_min)
    text = "struct %sFit {\n" % gelu.name
    text += "    // x* = kXMin + kXMinRest = kXMinHigh + kXMinLow, o_min likewise\n"
    text += declare("double", "kXMin", "%.17g" % x_double)
    text += declare("double", "kXMinRest", "%.9g" % (gelu.x_min - x_double))
    text += declare("double", "kOMin", "%.17g" % o_double)
    text += declare("double", "kOMinRest", "%.9g" % (gelu.o_min - o_double))
    text += declare("float", "kXMinHigh", number(x_hi))
    text += declare("float", "kXMinLow", number(gelu.x_min - x_hi))
    text += declare("float", "kOMinHigh", number(o_hi))
    text += declare("float", "kOMinLow", number(gelu.o_min - o_hi))
    text += "    // log2 |o_min|\n"
    text += declare("float", "kLog2OMin", number(mp.log(-gelu.o_min, 2)))
    text += "    // Smallest float >= x*: the branch is right from here on.\n"
    text += declare("float", "kBranch", number(float_at_least(gelu.x_min)))
    text += forward_lanes(gelu) + backward_lanes(gelu) + left_binades(gelu) + wide_pieces(gelu)
    text += forward_near_minimum(gelu) + near_minimum_double(gelu)
    if gelu.name == "Erf":
        text += erf_tail() + mills()
    return text + "};\n"


HEADER = """#pragma once

// Made by kernels/fit/fit_gelu.py; not edited by hand. Errors are absolute, of the fit with float
// coefficients, before the rounding of its evaluation.
// clang-format off

namespace kernels::gelu_fit {

/// sum over k of c[k] (t - centre)^k.
template <int kDegree>
struct Poly {
    float centre;
    float c[kDegree + 1];
};

/// sum over k of c[k] t^k, in double.
template <int kDegree>
struct Series {
    double c[kDegree + 1];
};

/// Eight polynomials, coefficient by coefficient, so that a lane permute fetches each lane's own.
/// The eight columns stand twice, which fills the sixteen lanes of AVX-512.
template <int kDegree>
struct LaneTable {
    alignas(64) float centre[16];
    alignas(64) float c[kDegree + 1][16];
};

"""


def main():
    sys.stdout.write(HEADER + emit_kind(Erf()) + "\n" + emit_kind(Tanh()))
    sys.stdout.write("\n}  // namespace kernels::gelu_fit\n")


if __name__ == "__main__":
    main()
