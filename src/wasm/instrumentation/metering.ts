// Fuel charges and the granularity of write tracking. Measurements: docs/adr/0002-webassembly-sandbox.md.

/** Bytes per page of linear memory; fixed by WebAssembly. */
export const PAGE_BYTES = 65_536;

/**
 * log2 of the granule in which writes are tracked and restored. With 4 KiB, the cards of a 256 MiB memory fill one page
 * (64 KiB), which is scanned in about 2 µs; smaller granules copy less but scan longer.
 */
export const CARD_SHIFT = 12;

/**
 * A mark covers its granule and the next one, so one mark at x covers x to x + 4096. Offsets are rounded down to a
 * multiple of 2^11: most stores mark their base address, and several fields of a struct share one mark. At most 2047
 * bytes of rounding plus the 16 bytes of the widest store stay within the 4096.
 */
export const MARK_REACH_BITS = 11;

/**
 * Regions with at least this many instructions have their own charge; smaller ones are charged with the region around
 * them. A charge itself takes about 8 instructions. A higher value runs faster, but charges for branches that are not
 * taken.
 */
export const BLOCK_COST_THRESHOLD = 32;

/**
 * When a region is charged for this many instructions of merged regions, the threshold falls to MIN_BLOCK_COST. The Go
 * compiler turns every function into a loop with a large switch: without this limit, a Go policy is charged four times
 * as much (measured; a limit of 0 halves the charges again, but runs 10 % slower).
 */
export const MERGED_COST_LIMIT = 128;

/** Regions smaller than this are always merged: their charge would cost more than their code. */
export const MIN_BLOCK_COST = 8;

/** Fuel for the call of a host function, besides what the host charges by length: the transition takes 20-100 ns. */
export const HOST_CALL_FUEL = 64;

/**
 * Flat price of a call of a host function, besides what depends on its arguments. It covers less than the 1 to 4 µs that a
 * call took in a loop, because programs make few such calls.
 */
export const HOST_FUNCTION_FUEL = 500;

/**
 * Locals are zeroed at function entry, and parameters and results are moved by calls, branches and blocks, so many of them take
 * time without an instruction.
 */
export const VALUES_PER_FUEL = 8;

/**
 * Up to this many bytes, memory.copy, memory.fill and memory.init cost only the flat price, and one mark covers what
 * they write.
 */
export const SMALL_BULK_BYTES = 2 ** CARD_SHIFT;

/** Flat price of a bulk memory operation: V8 takes 10-100 ns for 0-4096 bytes. */
export const BULK_FUEL = 64;

/** log2 of the bytes per unit of fuel that memory.copy, memory.fill and memory.init move, beyond the flat price. */
export const BULK_BYTES_SHIFT = 4;

/** Fuel per entry of a bulk table operation (measured: 5-10 ns). */
export const TABLE_ENTRY_FUEL = 8;

/** Fuel per page of memory.grow: about the cost of touching its 16 system pages for the first time. */
export const GROW_PAGE_FUEL = 4096;

/**
 * Fuel for a module's start function and initialization. Rust policies need 10,000; a Go program, with its whole run,
 * 130 M.
 */
export const INIT_FUEL = 300_000_000;
