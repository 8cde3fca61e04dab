// A hash table of labels in device memory: find or insert a batch of labels by one thread each.

#include "prelude.cuh"

constexpr int label_shift = 40;
constexpr i64 words_mask = (1ll << label_shift) - 1;
constexpr u32 claimed = 1u << 31;
constexpr u64 of_batch = 1ull << 63;
constexpr u64 tag_mask = ((1ull << 23) - 1) << 40;
constexpr u64 place_mask = (1ull << 40) - 1;

__device__ inline i64 length_of(u64 header) { return (i64)(header >> 32); }
__device__ inline u32 code_of(u64 header) { return (u32)header; }
__device__ inline i64 words_of(i64 length) { return (length + 7) >> 3; }
__device__ inline u64 header_of(i64 length, i64 code) { return (u64)length << 32 | (u64)code; }
__device__ inline u64 fold_product(u64 a, u64 b) { return __umul64hi(a, b) ^ (a * b); }

// The hash of a label from its words.
__device__ inline u64 hash_words(const u64* label, i64 length, const u64* seeds) {
  u64 hashed = seeds[0] ^ (u64)length;
  for (i64 d = 0; d < words_of(length); d++) hashed = fold_product(hashed ^ label[d], seeds[1]);
  return fold_product(hashed ^ seeds[2], seeds[3]);
}

// Whether two records are of one label; their codes may differ.
__device__ inline bool is_record(const u64* a, const u64* b) {
  i64 length = length_of(a[0]);
  if (length != length_of(b[0])) return false;
  for (i64 d = 1; d <= words_of(length); d++)
    if (a[d] != b[d]) return false;
  return true;
}

extern "C" __global__ void pack_strings(i64 lo, i64 hi, const u8* text, const i64* offsets,
                                        i64 first, u64* packed, i64* starts) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 begin = offsets[i] - first, length = offsets[i + 1] - offsets[i];
    i64 start = 2 * i + (begin >> 3);
    starts[i] = start;
    packed[start] = header_of(length, 0);
    for (i64 d = 0; d < words_of(length); d++) {
      u64 word = 0;
      for (i64 k = 8 * d; k < 8 * d + 8; k++) word = word << 8 | (k < length ? text[begin + k] : 0);
      packed[start + 1 + d] = word;
    }
  }
}

extern "C" __global__ void pack_integers(i64 lo, i64 hi, const u64* values, u64* packed,
                                         i64* starts) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    starts[i] = 2 * i;
    packed[2 * i] = header_of(8, 0);
    packed[2 * i + 1] = values[i];
  }
}

// Slots change during the launch; what they name was written before it: records of the dictionary,
// or those of the batch, which are all packed. So no thread waits for another to publish a label.
extern "C" __global__ void insert_labels(i64 lo, i64 hi, const u64* packed, const i64* starts,
                                         const u64* seeds, const u64* words, i64 num_slots,
                                         u64* slots, i64* sizes, u32* codes) {
  u64 mask = (u64)num_slots - 1;
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    const u64* label = packed + starts[i];
    i64 length = length_of(label[0]), size = 0;
    u64 hashed = hash_words(label + 1, length, seeds);
    u64 at = hashed & mask, tag = (hashed >> 1) & tag_mask;
    u32 code;
    for (;; at = (at + 1) & mask) {
      u64 slot = load_relaxed(&slots[at]);
      if (!slot) {
        slot = atomicCAS(&slots[at], 0ull, of_batch | tag | (u64)i);
        if (!slot) {
          size = (1ll << label_shift) + 1 + words_of(length);
          code = claimed | (u32)at;
          break;
        }
      }
      if ((slot & tag_mask) != tag) continue;
      i64 place = (i64)(slot & place_mask);
      if (slot & of_batch) {
        code = claimed | (u32)at;
        if (is_record(label, packed + starts[place])) break;
      } else if (is_record(label, words + place)) {
        code = code_of(words[place]);
        break;
      }
    }
    sizes[i] = size;
    codes[i] = code;
  }
}

extern "C" __global__ void append_labels(i64 lo, i64 hi, const u64* packed, const i64* starts,
                                         const i64* ends, const u32* codes, i64 used, i64 count,
                                         u64* words, i64* places, u64* slots) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 before = i ? ends[i - 1] : 0;
    if (ends[i] == before) continue;
    const u64* label = packed + starts[i];
    i64 length = length_of(label[0]);
    i64 place = used + (before & words_mask), code = count + (before >> label_shift);
    words[place] = header_of(length, code);
    for (i64 d = 1; d <= words_of(length); d++) words[place + d] = label[d];
    places[code] = place;
    u64* slot = &slots[codes[i] & ~claimed];
    *slot = (*slot & tag_mask) | (u64)place;
  }
}

extern "C" __global__ void resolve_codes(i64 lo, i64 hi, const u64* slots, const u64* words,
                                         u32* codes) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    if (codes[i] & claimed) codes[i] = code_of(words[slots[codes[i] & ~claimed] & place_mask]);
}

extern "C" __global__ void insert_records(i64 lo, i64 hi, const i64* places, const u64* words,
                                          const u64* seeds, i64 num_slots, u64* slots) {
  u64 mask = (u64)num_slots - 1;
  for (i64 code = lo + thread_index(); code < hi; code += thread_count()) {
    const u64* record = words + places[code];
    u64 hashed = hash_words(record + 1, length_of(record[0]), seeds);
    u64 at = hashed & mask, slot = ((hashed >> 1) & tag_mask) | (u64)places[code];
    while (atomicCAS(&slots[at], 0ull, slot)) at = (at + 1) & mask;
  }
}
