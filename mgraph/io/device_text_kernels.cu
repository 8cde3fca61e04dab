// Parse lines of edges where the text is in device memory: find the lines, then parse each by one
// thread.

#include "prelude.cuh"

constexpr i64 tile_bytes = 64;
constexpr u8 skipped = 0, edge = 1, odd = 2;  // kinds of lines
constexpr int max_digits = 18;                // of an id: any more might not fit i64
constexpr i64 max_line_bytes = 1 << 20;
constexpr double max_whole = 9007199254740992.0;
constexpr int max_power = 60;    // of the table of powers of ten
constexpr int exact_power = 22;  // up to this one they are doubles
constexpr int num_powers = 2 * max_power + 1;
constexpr double splitter = 134217729.0;  // 2^27 + 1 splits a double into two halves
constexpr double error_bound = 1.0 / 39614081257132168796771975168.0;  // 2^-95

struct Number {
  double value;
  bool is_float;    // written as one
  bool is_whole;    // an integer of 64 signed bits
  bool is_certain;  // the value is the nearest double
};

__device__ inline bool is_digit(u8 byte) { return byte >= '0' && byte <= '9'; }
__device__ inline bool is_blank(u8 byte, u8 separator) {
  return (byte == ' ' || byte == '\t') && byte != separator;
}

// mantissa * 10^power as the nearest double. Products are not fused with additions: the rounding
// error of a product is computed by Dekker's algorithm, as on the CPU.
__device__ inline double to_double(u64 mantissa, i64 power, const double* powers,
                                   bool& is_certain) {
  is_certain = true;
  if (mantissa == 0) return 0.0;
  if (mantissa <= (u64)max_whole && power <= exact_power && power >= -exact_power) {
    double exact = (double)mantissa;
    return power >= 0 ? __dmul_rn(exact, powers[power + max_power])
                      : exact / powers[max_power - power];
  }
  is_certain = false;
  if (power > max_power || power < -max_power) return 0.0;
  double high = (double)mantissa;
  double rest = (double)(i64)(mantissa - (u64)high);
  double ten = powers[power + max_power];
  double ten_rest = powers[num_powers + power + max_power];
  double product = __dmul_rn(high, ten);
  double t = __dmul_rn(splitter, high);
  double high_1 = t - (t - high);
  double high_2 = high - high_1;
  t = __dmul_rn(splitter, ten);
  double ten_1 = t - (t - ten);
  double ten_2 = ten - ten_1;
  double error = __dmul_rn(high_1, ten_1) - product;
  error = error + __dmul_rn(high_1, ten_2);
  error = error + __dmul_rn(high_2, ten_1);
  error = error + __dmul_rn(high_2, ten_2);
  error += __dmul_rn(high, ten_rest) + __dmul_rn(rest, ten);
  double bound = __dmul_rn(product, error_bound);
  double low = product + (error - bound);
  double top = product + (error + bound);
  is_certain = low == top;
  return top;
}

__device__ inline Number parse_number(const u8* text, i64 i, i64 end, const double* powers) {
  bool negative = text[i] == '-';
  if (negative || text[i] == '+') i++;
  u64 mantissa = 0;
  int digits = 0, seen = 0;
  i64 power = 0;
  Number number = {0.0, false, false, false};
  bool fraction = false;
  for (; i < end && (is_digit(text[i]) || (text[i] == '.' && !fraction)); i++) {
    if (text[i] == '.') {
      fraction = true;
      number.is_float = true;
      continue;
    }
    seen++;
    if (digits > 0 || text[i] != '0') digits++;
    if (digits <= 19) {
      mantissa = mantissa * 10 + (u64)(text[i] - '0');
      power -= fraction;
    }
  }
  bool certain = seen > 0 && digits <= 19;
  if (i < end && (text[i] == 'E' || text[i] == 'e')) {
    number.is_float = true;
    i++;
    i64 sign = i < end && text[i] == '-' ? -1 : 1;
    if (i < end && (text[i] == '-' || text[i] == '+')) i++;
    certain = certain && i < end;
    i64 exponent = 0;
    for (; i < end && is_digit(text[i]); i++) {
      exponent = exponent * 10 + (text[i] - '0');
      if (exponent > 9999) exponent = 9999;
    }
    power += sign * exponent;
  }
  certain = certain && i == end;
  const u64 sign_bit = 1ull << 63;
  bool beyond = digits > 19 || mantissa > sign_bit || (mantissa == sign_bit && !negative);
  number.is_whole = !number.is_float && !beyond;
  if (number.is_whole) {
    number.value = (double)(i64)(negative ? 0 - mantissa : mantissa);
    number.is_certain = certain;
    return number;
  }
  bool sure;
  number.value = to_double(mantissa, power, powers, sure);
  if (negative) number.value = -number.value;
  number.is_certain = certain && sure;
  return number;
}

// Where the separator or the blank after the field at i is, -1 if a byte is not plain.
__device__ inline i64 field_end(const u8* text, i64 i, i64 end, u8 separator) {
  for (; i < end && text[i] != separator && (separator || !is_blank(text[i], separator)); i++)
    if ((text[i] < ' ' && text[i] != '\t') || text[i] == '"') return -1;
  return i;
}

__device__ inline i64 after_blanks(const u8* text, i64 i, i64 end, u8 separator) {
  while (i < end && is_blank(text[i], separator)) i++;
  return i;
}

__device__ inline bool parse_plain_id(const u8* text, i64 i, i64 end, i64& value) {
  bool negative = text[i] == '-';
  i += negative;
  if (end - i <= 0 || end - i > max_digits) return false;
  i64 found = 0;
  for (; i < end; i++) {
    if (!is_digit(text[i])) return false;
    found = found * 10 + (text[i] - '0');
  }
  value = negative ? -found : found;
  return true;
}

__device__ inline u8 parse_plain_line(const u8* text, i64 begin, i64 end, i64 fields,
                                      const double* powers, i64& source, i64& target,
                                      Number& weight) {
  int num_fields = fields & 255, source_field = (fields >> 8) & 255;
  int target_field = (fields >> 16) & 255, weight_field = (fields >> 24) & 255;
  u8 separator = (fields >> 32) & 255;
  if (end - begin > max_line_bytes) return odd;
  if (begin < end && text[end - 1] == '\n') end--;
  if (begin < end && text[end - 1] == '\r') end--;
  i64 i = after_blanks(text, begin, end, separator);
  if (i == end) return skipped;
  if (text[i] == '#' || text[i] == '%') {
    while (i < end && text[i] != 0 && text[i] != '\r') i++;
    return i == end ? skipped : odd;
  }
  for (int field = 0; field < num_fields; field++) {
    i64 after = field_end(text, i, end, separator);
    i64 stop = after;
    while (stop > i && is_blank(text[stop - 1], separator)) stop--;
    if (stop <= i) return odd;
    if (field == source_field) {
      if (!parse_plain_id(text, i, stop, source)) return odd;
    } else if (field == target_field) {
      if (!parse_plain_id(text, i, stop, target)) return odd;
    } else if (field == weight_field) {
      weight = parse_number(text, i, stop, powers);
      bool exact = weight.is_float ||
                   (weight.is_whole && weight.value >= -max_whole && weight.value <= max_whole);
      if (!weight.is_certain || !exact) return odd;
    }
    bool has_separator = separator && after < end && field + 1 < num_fields;
    i = after_blanks(text, after + has_separator, end, separator);
  }
  return i == end ? edge : odd;
}

extern "C" __global__ void count_line_feeds(i64 lo, i64 hi, const u8* text, i64 size, i64* counts) {
  for (i64 tile = lo + thread_index(); tile < hi; tile += thread_count()) {
    i64 end = min((tile + 1) * tile_bytes, size), count = 0;
    for (i64 i = tile * tile_bytes; i < end; i++) count += text[i] == '\n';
    counts[tile] = count;
  }
}

extern "C" __global__ void list_line_begins(i64 lo, i64 hi, const u8* text, i64 size,
                                            const i64* before, i64* begins) {
  for (i64 tile = lo + thread_index(); tile < hi; tile += thread_count()) {
    i64 end = min((tile + 1) * tile_bytes, size), line = before[tile] + 1;
    for (i64 i = tile * tile_bytes; i < end; i++)
      if (text[i] == '\n') begins[line++] = i + 1;
  }
}

extern "C" __global__ void parse_plain_lines(i64 lo, i64 hi, const u8* text, const i64* begins,
                                             i64 fields, const double* powers, i64* sources,
                                             i64* targets, double* weights, u8* kinds,
                                             i64* num_floats) {
  i64 floats = 0;
  for (i64 line = lo + thread_index(); line < hi; line += thread_count()) {
    i64 source = 0, target = 0;
    Number weight = {0.0, false, true, true};
    u8 kind = parse_plain_line(text, begins[line], begins[line + 1], fields, powers, source, target,
                               weight);
    kinds[line] = kind;
    if (kind != edge) continue;
    sources[line] = source;
    targets[line] = target;
    if (weights) weights[line] = weight.value;
    floats += weight.is_float;
  }
  warp_add(num_floats, floats);
}
