// A lock of one word, of what all launches of this process share.
#pragma once
#include <sched.h>
#include <stdint.h>

struct Locked {
  uint32_t& word;
  explicit Locked(uint32_t& word) : word(word) {
    while (__atomic_exchange_n(&word, 1, __ATOMIC_ACQUIRE)) sched_yield();
  }
  ~Locked() { __atomic_store_n(&word, 0, __ATOMIC_RELEASE); }
};
