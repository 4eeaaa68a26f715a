/**
 * Generates small valid modules from arbitrary bytes for differential tests: all kinds of stores and addresses in
 * loops, branches and calls, and references to functions in locals, globals and tables, so that a mark, charge or saved global
 * that the rewriter wrongly omits is detected.
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
/** Functions that call no others. */
const CALLEES = ['$inner', '$second'];

/** Makes the result depend on what the globals of references hold when a run begins. */
const USE_REFERENCES = `
  (local.set $a ${masked('(call_ref $binary (local.get $p) (local.get $q) (global.get $r))')})
  (local.set $b (i32.add (ref.is_null (global.get $n)) (i32.shl (ref.is_null (global.get $any)) (i32.const 1))))`;

class Generator {
  readonly #choices: Uint8Array;
  #next = 0;
  #statements = 0;

  constructor(choices: Uint8Array) {
    this.#choices = choices;
  }

  module(): string {
    const functions = [...CALLEES, '$run'].map((name) => this.#function(name)).join('\n');
    return `(module
      (memory (export "memory") 17 20)
      (global $steps (export "steps") (mut i32) (i32.const 0))
      (global $g (mut i32) (i32.const 3))
      (global $h (mut i64) (i64.const 4))
      (rec (type $binary (sub (func (param i32 i32) (result i32)))) (type $exact (sub final $binary (func (param i32 i32) (result i32))))
        (type $other (func (param (ref $other)))))
      (table 2 funcref) (elem (table 0) (i32.const 0) func $inner $second)
      (table $typed 2 (ref null $binary)) (elem (table $typed) (i32.const 1) (ref $exact) (ref.func $second))
      (table $set 3 (ref $binary) (ref.func $inner))
      (global $r (mut (ref $binary)) (ref.func $second))
      (global $n (mut (ref null $exact)) (ref.null $exact))
      (global $any (mut funcref) (ref.func $inner))
      (data (i32.const 4000) "some text across the border of a granule, which is at four thousand ninety-six, and beyond")
      ${functions}
      (export "run" (func $run)))`;
  }

  #function(name: string): string {
    this.#statements = 0;
    const counters = Array.from({ length: MAX_DEPTH + 1 }, (_, depth) => `(local $i${depth} i32)`).join(' ');
    const type = name === '$second' ? '$exact' : '$binary';
    return `(func ${name} (type ${type}) (param $p i32) (param $q i32) (result i32) (local $a i32) (local $b i32) ${counters}
      (local $f (ref null $binary)) (local $s (ref $binary)) (local.set $s (global.get $r))
      (local.set $p ${masked('(local.get $p)')}) (local.set $q ${masked('(local.get $q)')})
      ${name === '$run' ? USE_REFERENCES : ''}
      ${this.#block(0, name === '$run')}
      (i32.add (i32.const ${name.length}) (i32.add (local.get $a) (i32.add (local.get $b) (i32.load (local.get $p))))))`;
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
    const kind = this.#choose(depth < MAX_DEPTH ? 24 : 14);
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
        return mayCall ? this.#call() : this.#keepReference();
      case 14:
        return `(if ${this.#expression(1)} (then ${this.#block(depth + 1, mayCall)}))`;
      case 15:
        return `(if ${this.#expression(1)} (then ${this.#block(depth + 1, mayCall)}) (else ${this.#block(depth + 1, mayCall)}))`;
      case 16:
        return `(block $b${depth} ${this.#block(depth + 1, mayCall)} (br_if $b${depth} ${this.#expression(1)}) ${this.#block(depth + 1, mayCall)})`;
      case 17:
        return `(block $x${depth} (block $y${depth} (br_table $x${depth} $y${depth} ${this.#expression(1)})) ${this.#block(depth + 1, mayCall)})`;
      case 13:
        return this.#keepReference();
      case 18:
        return `(block $n${depth} (local.set $s (br_on_null $n${depth} ${this.#nullable()})) ${this.#block(depth + 1, mayCall)})`;
      case 19:
        return `(local.set $s (block $f${depth} (result (ref $binary))
          (br_on_non_null $f${depth} ${this.#nullable()}) ${this.#block(depth + 1, mayCall)} ${this.#reference()}))`;
      case 20:
        return mayCall ? `(if ${this.#expression(1)} (then ${this.#tailCall()}))` : this.#store();
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
    return `(local.set ${this.#pick(LOCALS)} ${masked(`(${this.#callee('call')})`)})`;
  }

  #tailCall(): string {
    return `(${this.#callee('return_call')})`;
  }

  /** A call of a function that calls no other, without its parentheses. */
  #callee(call: 'call' | 'return_call'): string {
    const operands = `${this.#expression(1)} ${this.#expression(1)}`;
    switch (this.#choose(5)) {
      case 0:
        return `${call} ${this.#pick(CALLEES)} ${operands}`;
      case 1:
        return `${call}_indirect (type $binary) ${operands} (i32.const ${this.#choose(2)})`;
      case 2:
        return `${call}_indirect $set (type $binary) ${operands} (i32.const ${this.#choose(3)})`;
      default:
        return `${call}_ref $binary ${operands} ${this.#reference()}`;
    }
  }

  /** Keeps a reference in a local or global. */
  #keepReference(): string {
    switch (this.#choose(6)) {
      case 0:
        return `(local.set $f ${this.#nullable()})`;
      case 1:
        return `(local.set $s ${this.#reference()})`;
      case 2:
        return `(global.set $n ${this.#pick(['(ref.func $second)', '(ref.null $exact)', '(ref.null nofunc)'])})`;
      case 3:
        return `(global.set $any ${this.#nullable()})`;
      default:
        return `(global.set $r ${this.#reference()})`;
    }
  }

  #nullable(): string {
    return this.#pick([
      '(local.get $f)',
      '(global.get $n)',
      '(ref.null $exact)',
      `(table.get $typed (i32.const ${this.#choose(2)}))`,
      this.#reference(),
    ]);
  }

  #reference(): string {
    switch (this.#choose(6)) {
      case 0:
        return `(ref.func ${this.#pick(CALLEES)})`;
      case 1:
        return `(table.get $set (i32.const ${this.#choose(3)}))`;
      case 2:
        return '(ref.as_non_null (table.get $typed (i32.const 1)))';
      case 3:
        return `(select (result (ref $binary)) (ref.func $second) (local.get $s) ${this.#expression(0)})`;
      case 4:
        return '(local.get $s)';
      default:
        return '(global.get $r)';
    }
  }

  #expression(depth: number): string {
    switch (this.#choose(depth > 0 ? 10 : 3)) {
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
      case 8:
        return '(i32.add (ref.is_null (global.get $n)) (ref.is_null (global.get $any)))';
      default:
        return `(i32.add (global.get $g) (i32.wrap_i64 (global.get $h)))`;
    }
  }
}

function masked(expression: string): string {
  return `(i32.and ${expression} (i32.const 0xfffff))`;
}
