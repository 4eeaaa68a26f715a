/**
 * Generates small valid modules from arbitrary bytes for differential tests: all kinds of stores and addresses in
 * loops, branches and calls, so that a mark or charge that the rewriter wrongly omits is detected.
 *
 * The modules export `run` (i32, i32) -> i32 and the global `steps`, which counts executed statements. They terminate
 * and stay within their memory. All locals are addresses in the first MiB (256 granules). A run writes few of these
 * granules, so every mark matters.
 */
export function generatedModule(choices: Uint8Array): string {
  return new Generator(choices).module();
}

const MAX_DEPTH = 4;
const MAX_STATEMENTS = 60;
const STORES = [
  ['i32.store', 'i32'],
  ['i32.store8', 'i32'],
  ['i32.store16', 'i32'],
  ['i64.store', 'i64'],
  ['i64.store8', 'i64'],
  ['i64.store16', 'i64'],
  ['i64.store32', 'i64'],
  ['f32.store', 'f32'],
  ['f64.store', 'f64'],
  ['v128.store', 'v128'],
] as const;
const OFFSETS = [0, 1, 8, 100, 2040, 2047, 2048, 4095, 4096, 5000, 9000];
const LOCALS = ['$p', '$q', '$a', '$b'];

class Generator {
  readonly #choices: Uint8Array;
  #next = 0;
  #statements = 0;

  constructor(choices: Uint8Array) {
    this.#choices = choices;
  }

  module(): string {
    const functions = ['$inner', '$run'].map((name) => this.#function(name)).join('\n');
    return `(module
      (memory (export "memory") 17 20)
      (global $steps (export "steps") (mut i32) (i32.const 0))
      (global $g (mut i32) (i32.const 3))
      (global $h (mut i64) (i64.const 4))
      (table 2 funcref) (elem (i32.const 0) $inner $inner)
      (type $binary (func (param i32 i32) (result i32)))
      (data (i32.const 4000) "some text across the border of a granule, which is at four thousand ninety-six, and beyond")
      ${functions}
      (export "run" (func $run)))`;
  }

  #function(name: string): string {
    this.#statements = 0;
    const counters = Array.from({ length: MAX_DEPTH + 1 }, (_, depth) => `(local $i${depth} i32)`).join(' ');
    return `(func ${name} (param $p i32) (param $q i32) (result i32) (local $a i32) (local $b i32) ${counters}
      (local.set $p ${masked('(local.get $p)')}) (local.set $q ${masked('(local.get $q)')})
      ${this.#block(0, name === '$run')}
      (i32.add (local.get $a) (i32.add (local.get $b) (i32.load (local.get $p)))))`;
  }

  /** The next choice below `bound`; zero when the input is used up. */
  #choose(bound: number): number {
    return (this.#choices[this.#next++] ?? 0) % bound;
  }

  #pick<T>(options: readonly T[]): T {
    return options[this.#choose(options.length)] as T;
  }

  #block(depth: number, mayCall: boolean): string {
    const count = 1 + this.#choose(5);
    const step = '(global.set $steps (i32.add (global.get $steps) (i32.const 1)))';
    return Array.from({ length: count }, () => `${step} ${this.#statement(depth, mayCall)}`).join('\n');
  }

  #statement(depth: number, mayCall: boolean): string {
    if (this.#statements++ > MAX_STATEMENTS || this.#next >= this.#choices.length) {
      return '(nop)';
    }
    const kind = this.#choose(depth < MAX_DEPTH ? 19 : 14);
    switch (kind) {
      case 0:
      case 1:
        return `(local.set ${this.#pick(LOCALS)} ${masked(this.#expression(2))})`;
      case 2:
      case 3:
      case 4:
      case 5:
      case 11:
      case 12:
      case 13:
        return this.#store();
      case 6:
        return `(memory.fill ${this.#address()} ${this.#expression(1)} (i32.const ${this.#pick([0, 1, 100, 4096, 4097, 20_000])}))`;
      case 7:
        return `(memory.copy ${this.#address()} ${this.#address()} (i32.const ${this.#pick([0, 3, 4096, 7000])}))`;
      case 8:
        return `(drop (memory.grow (i32.const ${this.#choose(3)})))`;
      case 9:
        return `(global.set $g ${this.#expression(1)}) (global.set $h (i64.add (global.get $h) (i64.const 1)))`;
      case 10:
        return mayCall ? this.#call() : this.#store();
      case 14:
        return `(if ${this.#expression(1)} (then ${this.#block(depth + 1, mayCall)}))`;
      case 15:
        return `(if ${this.#expression(1)} (then ${this.#block(depth + 1, mayCall)}) (else ${this.#block(depth + 1, mayCall)}))`;
      case 16:
        return `(block $b${depth} ${this.#block(depth + 1, mayCall)} (br_if $b${depth} ${this.#expression(1)}) ${this.#block(depth + 1, mayCall)})`;
      case 17:
        return `(block $x${depth} (block $y${depth} (br_table $x${depth} $y${depth} ${this.#expression(1)})) ${this.#block(depth + 1, mayCall)})`;
      default:
        return `(local.set $i${depth} (i32.const ${1 + this.#choose(4)}))
          (loop $l${depth} ${this.#block(depth + 1, mayCall)}
            (br_if $l${depth} (local.tee $i${depth} (i32.sub (local.get $i${depth}) (i32.const 1)))))`;
    }
  }

  #store(): string {
    const [store, type] = this.#pick(STORES);
    return `(${store} offset=${this.#pick(OFFSETS)} ${this.#address()} ${this.#value(type)})`;
  }

  /** Within the first 16 pages; the last page is room for offsets and lengths. */
  #address(): string {
    switch (this.#choose(6)) {
      case 0:
        return `(i32.const ${this.#choose(256) * 4095})`;
      case 1:
        return `(local.tee ${this.#pick(LOCALS)} ${masked(this.#expression(1))})`;
      case 2:
        return masked(this.#expression(2));
      default:
        return `(local.get ${this.#pick(LOCALS)})`;
    }
  }

  #value(type: string): string {
    switch (type) {
      case 'i32':
        return this.#expression(1);
      case 'i64':
        return `(i64.extend_i32_u ${this.#expression(1)})`;
      case 'f32':
        return `(f32.convert_i32_s ${this.#expression(1)})`;
      case 'f64':
        return `(f64.convert_i32_s ${this.#expression(1)})`;
      default:
        return `(i32x4.splat ${this.#expression(1)})`;
    }
  }

  #call(): string {
    const call = this.#choose(2) === 0 ? 'call $inner' : 'call_indirect (type $binary)';
    const index = call === 'call $inner' ? '' : '(i32.const 1)';
    const result = `(${call} ${this.#expression(1)} ${this.#expression(1)} ${index})`;
    return `(local.set ${this.#pick(LOCALS)} ${masked(result)})`;
  }

  #expression(depth: number): string {
    switch (this.#choose(depth > 0 ? 9 : 3)) {
      case 0:
        return `(i32.const ${this.#choose(256) * 4099 + 1})`;
      case 1:
      case 2:
        return `(local.get ${this.#pick(LOCALS)})`;
      case 3:
        return `(i32.add ${this.#expression(depth - 1)} ${this.#expression(depth - 1)})`;
      case 4:
        return `(i32.xor ${this.#expression(depth - 1)} ${this.#expression(depth - 1)})`;
      case 5:
        return `(i32.load offset=${this.#pick(OFFSETS)} ${masked(this.#expression(depth - 1))})`;
      case 6:
        return '(memory.size)';
      case 7:
        return `(local.tee ${this.#pick(LOCALS)} ${masked(this.#expression(depth - 1))})`;
      default:
        return `(i32.add (global.get $g) (i32.wrap_i64 (global.get $h)))`;
    }
  }
}

function masked(expression: string): string {
  return `(i32.and ${expression} (i32.const 0xfffff))`;
}
