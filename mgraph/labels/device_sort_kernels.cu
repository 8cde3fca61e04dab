// Sort records of labels in device memory by their words, the steps between the sorts of 64-bit
// keys.

#include "prelude.cuh"

constexpr u64 sign = 1ull << 63;

__device__ inline i64 length_of(u64 header) { return (i64)(header >> 32); }
__device__ inline i64 words_of(i64 length) { return (length + 7) >> 3; }

extern "C" __global__ void flip_signs(i64 lo, i64 hi, const i64* places, u64* words) {
  for (i64 code = lo + thread_index(); code < hi; code += thread_count())
    words[places[code] + 1] ^= sign;
}

extern "C" __global__ void read_keys(i64 lo, i64 hi, const i64* codes, const i64* ties,
                                     const i64* places, const u64* words, i64 depth, u64* keys,
                                     i64* sides) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    const u64* record = words + places[codes ? codes[i] : i];
    i64 length = length_of(record[0]);
    bool goes_on = length > 8 * depth;
    keys[i] = goes_on ? record[1 + depth] : (u64)length;
    if (sides) sides[i] = 2 * ties[i] + goes_on;
  }
}

extern "C" __global__ void find_ties(i64 lo, i64 hi, i64 count, const i64* order, const u64* keys,
                                     const i64* sides, i64* begins, u8* is_tied) {
  auto same = [=](i64 k) {
    i64 a = order[k - 1], b = order[k];
    return keys[a] == keys[b] && (!sides || (sides[a] == sides[b] && (sides[a] & 1)));
  };
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    bool as_before = i > 0 && same(i);
    begins[i] = !as_before;
    is_tied[i] = as_before || (i + 1 < count && same(i + 1));
  }
}

extern "C" __global__ void take_ties(i64 lo, i64 hi, const i64* tied, const i64* order,
                                     const i64* codes, const i64* at, const i64* ties,
                                     i64* codes_of_tied, i64* at_of_tied, i64* ties_of_tied) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 k = tied[i];
    codes_of_tied[i] = codes ? codes[order[k]] : order[k];
    at_of_tied[i] = codes ? at[k] : k;
    ties_of_tied[i] = ties[k];
  }
}

extern "C" __global__ void arrange(i64 lo, i64 hi, const i64* order, const i64* codes,
                                   const i64* at, i64* sorted_codes) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    sorted_codes[at[i]] = codes[order[i]];
}

extern "C" __global__ void number_labels(i64 lo, i64 hi, const i64* sorted_codes, const i64* places,
                                         const u64* words, id_t* ids, i64* lengths) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 code = sorted_codes[i];
    ids[code] = (id_t)i;
    lengths[i + 1] = length_of(words[places[code]]);
  }
}

extern "C" __global__ void write_strings(i64 lo, i64 hi, const i64* sorted_codes, const i64* places,
                                         const u64* words, const i64* offsets, u8* text) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    const u64* record = words + places[sorted_codes[i]];
    i64 length = length_of(record[0]);
    u8* to = text + offsets[i];
    for (i64 k = 0; k < length; k++) to[k] = (u8)(record[1 + (k >> 3)] >> (56 - 8 * (k & 7)));
  }
}

extern "C" __global__ void write_integers(i64 lo, i64 hi, const i64* sorted_codes,
                                          const i64* places, const u64* words, i64 is_signed,
                                          u64* values) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    u64 word = words[places[sorted_codes[i]] + 1];
    values[i] = is_signed ? word ^ sign : word;
  }
}
